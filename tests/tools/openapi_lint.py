#!/usr/bin/env python3
"""openapi_lint.py ROUTES_PRINT: compares docs/openapi.yaml with the sources, each way, and prints FILE:LINE: what is wrong.

ROUTES_PRINT is the program of tests/tools/routes_print.c. What is compared: verbs, paths, roles, body limits and queries with the table
of routes; words with their tables; queries with the calls that read them; roles with tests/tools/role_table.py; requests with docs/api.md.
Then the shape of the schemas: what is always there is required, what is not says when, and no object takes members that it does not name.
"""
import ast
import os
import re
import subprocess
import sys

import openapi

FREE_MAX = 10
ROLES_TABLE = "tests/tools/role_table.py"
PROSE = "docs/api.md"
STREAMS = ("manifest", "model_bytes")  # what limits the body of a stream

problems = []


def report(text, word="", path=None):
    problems.append(f"{path or doc.path}:{doc.line(word) if word and not path else 1}: {text}")


def compare(what, mine, other, where, word=""):
    """Two sets that must be equal."""
    for item in sorted(map(str, mine - other)):
        report(f"{what}: {item} is not in {where}", word or item)
    for item in sorted(map(str, other - mine)):
        report(f"{what}: {where} has {item}, and {doc.path} has not", word)


# --- against the sources


def check_routes(lines):
    """The table of routes."""
    rows = {}
    for verb, pattern, roles, body, query in lines:
        rows[verb, pattern] = {"roles": set(roles.split(",")), "body": body, "query": set() if query == "-" else set(query.split(","))}
    compare("requests", {f"{o.verb} {o.pattern}" for o in doc.operations}, {" ".join(row) for row in rows}, "the table of routes")
    for o in doc.operations:
        row = rows.get((o.verb, o.pattern))
        if not row:
            continue
        compare(f"{o}: x-roles", set(o.roles), row["roles"], "the table of routes", o.path + ":")
        queries = {p["name"] for p in doc.parameters(o, "query")}
        compare(f"{o}: query", queries, row["query"], "the table of routes", o.path + ":")
        limit = o.raw.get("x-body-max")
        wanted = {"none": [None], "json_bytes": ["json_bytes"], "stream": STREAMS}.get(row["body"]) or [int(row["body"])]
        if limit not in wanted:
            report(f"{o}: x-body-max is {limit}, and the table of routes says {row['body']}", o.path + ":")


def check_paths():
    """Parameters of paths."""
    for o in doc.operations:
        names = [p["name"] for p in doc.parameters(o, "path")]
        compare(f"{o}: parameters of the path", set(names), set(re.findall(r"\{([^}]*)\}", o.path)), "the path", o.path + ":")
        if not all(p.get("required") for p in doc.parameters(o, "path")):
            report(f"{o}: a parameter of the path is not required", o.path + ":")
    names = [o.name for o in doc.operations]
    for name in {n for n in names if not n or names.count(n) > 1}:
        report(f"operationId {name or 'missing'}, or of several", name)


def check_words(lines):
    """The tables of words, and the words that operations answer."""
    tables = {}
    for table, word in lines:
        tables.setdefault(table, set()).add(word)
    seen = set()
    for name, schema in doc.raw["components"]["schemas"].items():
        if "x-words" in schema:
            seen.add(schema["x-words"])
            words = {word.rsplit(":", 1)[-1] for word in schema["enum"]}
            compare(f"{name}: words", words, tables.get(schema["x-words"], set()), f"the table {schema['x-words']}", f"{name}:")
    compare("tables of words", seen, set(tables), "tests/tools/routes_print.c")
    used = {word for o in doc.operations for word in doc.words_of(o)} | set(doc.raw["x-error-groups"]["transport"])
    compare("error words of operations", used, tables["problem"], "wire/words", "x-error-groups")
    for o in doc.operations:
        groups = doc.raw["x-error-groups"]
        of_any = {*groups["transport"], *groups["fault"]} | (set() if "anyone" in o.roles else set(groups["identity"]))
        for word in sorted(set(o.errors) & of_any):
            report(f"{o}: {word} is in x-error-groups", o.path + ":")
        if list(o.errors) != sorted(set(o.errors)):
            report(f"{o}: x-errors are not in order", o.path + ":")


READERS = ("exchange_number", "exchange_flag", "http_query", "http_query_item")


def read_by(text, callers, path):
    """The names of queries that calls of these functions read; of one that passes a name on, the names that its callers give."""
    names, passed = set(), set()
    for call in re.finditer(rf"(?<!\w)(?:{'|'.join(callers)})\(\s*(?:x|&\w+->request),\s*([^,]+),", text):
        argument = call.group(1).strip()
        literal = re.fullmatch(r'"([^"]+)"', argument)
        if literal:
            names.add(literal.group(1))
            continue
        # The function that the call stands in, which takes the name.
        heads = re.findall(rf"^(\w+)\([^{{;]*const char \*{re.escape(argument)}\b[^{{;]*\)\n{{", text[: call.start()], re.M)
        if heads:
            passed.add(heads[-1])
        else:
            report(f"a query is read by {argument}, which is no literal", path=path)
    return names | (read_by(text, passed, path) if passed else set())


def check_queries():
    """The calls of the coordinator that read queries."""
    read = set()
    for folder, _, names in os.walk("daemon"):
        for path in (f"{folder}/{n}" for n in names if n.endswith(".c")):
            if path not in ("daemon/http/http.c", "daemon/http/exchange.c"):
                with open(path, encoding="utf-8") as f:
                    read |= read_by(f.read(), READERS, path)
    named = {p["name"] for o in doc.operations for p in doc.parameters(o, "query")}
    compare("query", named, read, "any call in daemon/ that reads queries")


def literals(path):
    """What a Python file assigns at its top that is a literal."""
    with open(path, encoding="utf-8") as f:
        tree = ast.parse(f.read())
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                found[node.targets[0].id] = ast.literal_eval(node.value)
            except ValueError:
                pass
    return found


def check_role_table():
    """Who may, in the table that an end-to-end test asks by."""
    table = literals(ROLES_TABLE)
    may, known = {}, {role for o in doc.operations for role in o.roles}
    for line in table["TABLE"].strip().split("\n"):
        request, cells = line.split(" | ")
        verb, path = request.split("?")[0].split()[:2]
        o = doc.find(verb, path)
        if not o:
            report(f"{request.strip()}: no such request", path=ROLES_TABLE)
            continue
        roles = may.setdefault(str(o), set())
        roles |= {role.removesuffix("-token") for role, cell in zip(table["COLUMNS"], cells.split()) if cell not in ("N", "F")}
        roles |= {who for who, what in table["EXCEPT"] if what == request.strip()} & known
    for o in doc.operations:
        if str(o) not in may:
            report(f"{o} is in no row of {ROLES_TABLE}", o.path + ":")
        elif "anyone" in may[str(o)]:
            compare(f"{o}: x-roles", set(o.roles), {"anyone"}, ROLES_TABLE, o.path + ":")
        else:
            compare(f"{o}: x-roles", set(o.roles), may[str(o)], ROLES_TABLE, o.path + ":")


def check_prose():
    """The requests that docs/api.md lists."""
    found = set()
    with open(PROSE, encoding="utf-8") as f:
        for line in f:
            if not re.match("[|] `[A-Z]", line):
                continue
            first, *more = re.findall(r"`([^`]*)`", line.split("|")[1])
            verb, path = first.split(" ", 1)
            path = re.sub(r"\{[^}]*\}", "{}", path.split("?")[0])
            found.add((verb, path))
            found |= {(verb, path.rsplit("/", 1)[0] + "/" + word) for word in more if re.fullmatch("[a-z]+", word)}
    compare("requests", {f"{o.verb} {o.pattern}" for o in doc.operations}, {" ".join(row) for row in found}, PROSE)


# --- the schemas


def walk(node, where, seen):
    """Each schema below this one, with where it stands; what is referred to once."""
    if "$ref" in node:
        if node["$ref"] in seen:
            return
        seen.add(node["$ref"])
        where = node["$ref"].rsplit("/", 1)[-1]
        node = doc.resolve({"$ref": node["$ref"]})
        yield from walk(node, where, seen)
        return
    yield node, where
    for key, value in {**node.get("properties", {}), **node.get("patternProperties", {})}.items():
        yield from walk(value, f"{where}.{key}", seen)
    for key in ("items", "propertyNames", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from walk(node[key], f"{where}.{key}", seen)
    for key in ("oneOf", "allOf", "prefixItems"):
        for value in node.get(key, ()):
            yield from walk(value, where, seen)


def answer_schemas():
    for o in doc.operations:
        for status in o.raw["responses"]:
            for kind, content in doc.answer(o, status).get("content", {}).items():
                yield content["schema"], f"{o} {status}", kind


def check_object(schema, where, refines):
    word = where.rsplit(".", 1)[-1]
    if "x-free" in schema:
        if not schema["x-free"]:
            report(f"{where}: x-free without a reason", word)
        return
    if "properties" not in schema and not refines:
        report(f"{where}: an object without properties", word)
    if schema.get("additionalProperties") is not False and not refines:
        report(f"{where}: additionalProperties is not false", word)
    required = set(schema.get("required", ()))
    properties = schema.get("properties", {})
    for name, value in {**properties, **schema.get("patternProperties", {})}.items():
        if (name in required) == ("x-absent" in value):
            report(f"{where}: {name} is {'required and has' if name in required else 'neither required nor has'} x-absent", word)
        if "x-absent" in value and not value["x-absent"]:
            report(f"{where}: {name}: x-absent does not say when", word)
        for operation in value.get("x-only", ()):
            if operation not in {o.name for o in doc.operations}:
                report(f"{where}: {name}: x-only names {operation}, which is none", word)
    if not refines:
        for name in sorted(required - set(properties)):
            report(f"{where}: {name} is required and no property", word)


def check_schemas():
    """The shape of answers' schemas."""
    seen, free, refining = set(), [], set()
    for top, where, kind in answer_schemas():
        for part in top.get("allOf", ())[1:] if "$ref" not in top else ():
            refining.add(id(part))
        for schema, place in walk(top, where, seen):
            for part in schema.get("allOf", ())[1:]:
                refining.add(id(part))
            if not {"type", "oneOf", "allOf"} & set(schema):
                report(f"{place}: a schema without type", place.rsplit(".", 1)[-1])
            types = schema.get("type", ())
            if "object" in ([types] if isinstance(types, str) else types):
                check_object(schema, place, id(schema) in refining)
                free += [place] if "x-free" in schema else []
    if not free or len(free) > FREE_MAX:
        report(f"{len(free)} free maps, of {FREE_MAX} at most: {' '.join(free)}", "x-free")
    reachable = {r.rsplit("/", 1)[-1] for r in re.findall(r"\$ref: '([^']+)'", doc.text)}
    for kind, parts in doc.raw["components"].items():
        for name in parts:
            if name not in reachable and kind != "securitySchemes":
                report(f"nothing refers to {kind}/{name}", f"{name}:")


def main():
    global doc
    doc = openapi.Description()
    out = subprocess.run([sys.argv[1]], stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = [line.split(" ") for line in out.strip("\n").split("\n")]
    check_routes([line[1:] for line in lines if line[0] == "route"])
    check_paths()
    check_words([line[1:] for line in lines if line[0] == "word"])
    check_queries()
    check_role_table()
    check_prose()
    check_schemas()
    print("\n".join(dict.fromkeys(problems)))
    return len(problems) > 0


sys.exit(main())
