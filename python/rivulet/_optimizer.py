"""A recipe's optimizer as a torch optimizer: its steps are those of the built-in trainer."""
from typing import Any, Dict, Iterable, List, Mapping

_NAMES = ("sgd", "adam", "adamw")
_OF_SGD = ("momentum", "nesterov")
_OF_ADAM = ("beta1", "beta2", "epsilon")


def _said(local: Mapping[str, Any]) -> Dict[str, Any]:
    """The recipe's words. ValueError: torch has nothing for them."""
    said = {"name": "sgd", **local.get("optimizer", {})}
    if said["name"] not in _NAMES:
        raise ValueError("local.optimizer.name is %r: task.optimizer makes %s" % (said["name"], ", ".join(_NAMES)))
    for word in _OF_ADAM if said["name"] == "sgd" else _OF_SGD:
        if said.get(word):
            raise ValueError("local.optimizer.%s is nothing for %s" % (word, said["name"]))
    return said


def _trained(params: Any, roles: Mapping[str, str]) -> List[Any]:
    """Of a module, what the job does not keep as it is."""
    if not hasattr(params, "named_parameters"):
        return list(params)
    return [p for name, p in params.named_parameters() if p.requires_grad and roles.get(name) != "frozen"]


def _flat(optimizer: Any) -> Iterable[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _prepare(optimizer: Any, local: Mapping[str, Any], shift: List[Any]) -> None:
    """What the job does to gradients before a step, as the built-in trainer: prox, clip, control variates."""
    import torch

    prox, clip = float(local.get("prox", 0)), float(local.get("clip_norm", 0))
    if not (prox or clip or shift):
        return
    if not hasattr(optimizer, "register_step_pre_hook"):
        raise ValueError("local.prox, clip_norm and control_variates need PyTorch 2.0")
    anchors = [p.detach().clone() for p in _flat(optimizer)] if prox else []

    def before_step(*_: Any) -> None:
        params = list(_flat(optimizer))
        with torch.no_grad():
            for p, anchor in zip(params, anchors):
                if p.grad is not None:
                    p.grad.add_(p - anchor, alpha=prox)
        if clip:
            torch.nn.utils.clip_grad_norm_(params, clip)
        for p, value in zip(params, shift):
            if p.grad is not None:
                p.grad.add_(value)

    optimizer.register_step_pre_hook(before_step)


def _shift(params: Any, variates: Mapping[str, Any], roles: Mapping[str, str]) -> List[Any]:
    """Of each parameter, what control variates add to its gradient."""
    import torch

    if not variates:
        return []
    if not hasattr(params, "named_parameters"):
        raise ValueError("a job with control variates: give task.optimizer the module, whose parameters have names")
    by_id = {id(p): name for name, p in params.named_parameters()}
    out = []
    for p in _trained(params, roles):
        value = variates.get(by_id[id(p)])
        out.append(torch.zeros_like(p) if value is None else torch.tensor(value, dtype=p.dtype, device=p.device))
    return out


def _stay(optimizer: Any) -> None:
    """A state of an earlier task brings that round's rate along: what the recipe says stays this round's."""
    said = [{word: value for word, value in group.items() if word != "params"} for group in optimizer.param_groups]

    def after_load(*_: Any) -> None:
        for group, values in zip(optimizer.param_groups, said):
            group.update(values)

    if hasattr(optimizer, "register_load_state_dict_post_hook"):
        optimizer.register_load_state_dict_post_hook(after_load)


def make(params: Any, local: Mapping[str, Any], rate: float, task: Any) -> Any:
    """For the parameters, as a torch optimizer takes them, or a module; `rate` is the round's."""
    import torch

    said, roles = _said(local), task.roles()
    if rate <= 0:
        raise ValueError("the job gives no learning rate for this round (local.optimizer.rate, local.schedule)")
    trained = _trained(params, roles)
    if not trained:
        raise ValueError("there are no parameters to train")
    both = {"lr": rate, "weight_decay": float(said.get("weight_decay", 0))}
    if said["name"] == "sgd":
        momentum, nesterov = float(said.get("momentum", 0)), bool(said.get("nesterov"))
        optimizer: Any = torch.optim.SGD(trained, momentum=momentum, nesterov=nesterov, **both)
    else:
        kind = torch.optim.Adam if said["name"] == "adam" else torch.optim.AdamW
        betas = (float(said.get("beta1", 0.9)), float(said.get("beta2", 0.999)))
        optimizer = kind(trained, betas=betas, eps=float(said.get("epsilon", 1e-8)), **both)
    _prepare(optimizer, local, _shift(params, task.variates(), roles))
    _stay(optimizer)
    return optimizer


def normaliser(local: Mapping[str, Any], rate: float, steps: int) -> float:
    """The sum of the weights that so many steps give their gradients (FedNova); 0: it is their number."""
    said = local.get("optimizer", {})
    momentum, pull = float(said.get("momentum", 0)), rate * float(local.get("prox", 0))
    if said.get("name", "sgd") != "sgd" or not (momentum or pull):
        return 0.0
    weight = velocity = 0.0
    for _ in range(steps):
        g = 1 - pull * weight
        velocity = momentum * velocity + g
        weight += g + momentum * velocity if said.get("nesterov") else velocity
    return weight
