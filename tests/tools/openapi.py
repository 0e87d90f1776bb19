"""docs/openapi.yaml as the checks read it: its operations, its schemas, and which operation a request is of.

Needs python3-yaml. What is checked is in openapi_lint.py (the text, against the sources) and openapi_answers.py (against what a coordinator
answered).
"""
import re

import yaml

PATH = "docs/openapi.yaml"
VERBS = ("get", "head", "post", "put", "patch", "delete")


class Loader(yaml.SafeLoader):
    """YAML with each key once, no merges, which other readers do not have, and no key without a value: a text with a comma wants quotes."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, value in node.value:
            if isinstance(value, yaml.ScalarNode) and value.value == "" and value.style is None:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} has no value", key.start_mark)
            if key.tag == "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, "a merge (<<)", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class Operation:
    """A verb and a path."""

    def __init__(self, verb, path, shared, raw):
        self.verb, self.path, self.raw = verb.upper(), path, raw
        self.name = raw.get("operationId", "")
        self.roles = raw.get("x-roles", [])
        self.errors = raw.get("x-errors", [])
        self.parameters = shared + raw.get("parameters", [])
        self.pattern = re.sub(r"\{[^}]*\}", "{}", path)

    def __str__(self):
        return f"{self.verb} {self.path}"


class Description:
    def __init__(self, path=PATH):
        self.path = path
        with open(path, encoding="utf-8") as f:
            self.text = f.read()
        self.raw = yaml.load(self.text, Loader)
        self.operations = []
        for path, item in self.raw["paths"].items():
            shared = item.get("parameters", [])
            self.operations += [Operation(verb, path, shared, item[verb]) for verb in VERBS if verb in item]

    def resolve(self, node):
        """The node itself, or what its $ref names; keywords beside a $ref stay."""
        while isinstance(node, dict) and "$ref" in node:
            target = self.raw
            for word in node["$ref"].removeprefix("#/").split("/"):
                target = target[word]
            node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
        return node

    def parameters(self, operation, place):
        return [p for p in map(self.resolve, operation.parameters) if p["in"] == place]

    def answer(self, operation, status):
        """The response of a status, or the default one; None: neither is there."""
        answers = operation.raw.get("responses", {})
        return self.resolve(answers.get(str(status), answers.get("default")))

    def words_of(self, operation):
        """The error words that the operation may answer."""
        groups = self.raw["x-error-groups"]
        known = "anyone" not in operation.roles
        return {*operation.errors, *groups["transport"], *groups["fault"], *(groups["identity"] if known else ())}

    def find(self, verb, path):
        """The operation of a request, as the coordinator routes it; None: it has none."""
        found = None
        for operation in self.operations:
            pattern = "[^/]+".join(map(re.escape, operation.pattern.split("{}")))
            if not re.fullmatch(pattern, path):
                continue
            if operation.verb == verb and (found is None or "{}" not in operation.pattern):
                found = operation
        return found or (self.find("GET", path) if verb == "HEAD" else None)

    def line(self, word):
        """Where in the text the word stands first."""
        at = self.text.find(word)
        return self.text.count("\n", 0, at) + 1 if at >= 0 else 1
