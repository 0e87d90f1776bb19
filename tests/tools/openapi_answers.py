#!/usr/bin/env python3
"""openapi_answers.py DIRECTORY [all]: compares what coordinators answered in tests with docs/openapi.yaml.

DIRECTORY is that of RIVULET_KEEP_ANSWERS (daemon/http/answers.h). Each answer must be one that the file describes: its status, its body by
the schema, its headers, its error word and the role that got it. With "all", each request x status that the file names, each error word,
each header and each property must have been answered at least once, and a property that may be null once with something else. Prints what is
wrong or missing; needs python3-yaml and python3-jsonschema.
"""
import json
import os
import sys

import jsonschema
import openapi

SHOWN = 20  # of what is wrong


class Checker:
    def __init__(self):
        self.doc = openapi.Description()
        self.schemas = {}  # (operation, status, media type): validator, schema
        self.places, self.valued = set(), set()  # of all properties; of those that may be null
        self.answers, self.words, self.headers = set(), set(), set()  # what came
        self.shown, self.filled = set(), set()
        self.wrong = {}  # a sentence: how often
        self.count = 0

    # --- schemas without references, whose properties know what they are called

    def inline(self, node, where):
        if isinstance(node, list):
            return [self.inline(part, where) for part in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            beside = {key: value for key, value in node.items() if key != "$ref"}
            return {**self.inline(self.doc.resolve({"$ref": node["$ref"]}), node["$ref"].rsplit("/", 1)[-1]), **beside}
        out = {}
        for key, value in node.items():
            if key in ("properties", "patternProperties"):
                out[key] = {name: {**self.inline(part, f"{where}.{name}"), "x-place": f"{where}.{name}"} for name, part in value.items()}
            else:
                out[key] = self.inline(value, where)
        return out

    def schema(self, operation, status, kind):
        key = operation, str(status), kind
        if key not in self.schemas:
            answer = self.doc.answer(operation, status)
            made = self.inline(answer["content"][kind]["schema"], f"{operation} {status}")
            self.schemas[key] = jsonschema.Draft202012Validator(made), made
        return self.schemas[key]

    def expect(self, schema):
        """Notes the properties below."""
        for part in [*schema.get("properties", {}).values(), *schema.get("patternProperties", {}).values()]:
            self.places.add(part["x-place"])
            if is_nullable(part):
                self.valued.add(part["x-place"])
            self.expect(part)
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                self.expect(schema[key])
        for part in (*schema.get("oneOf", ()), *schema.get("allOf", ()), *schema.get("prefixItems", ())):
            self.expect(part)

    # --- what came

    def see(self, operation, value, schema):
        """Notes the properties that a good value has; returns what stands where it must not."""
        for part in schema.get("allOf", ()):
            yield from self.see(operation, value, part)
        for part in schema.get("oneOf", ()):
            if set(part.get("required", ())) <= (value.keys() if isinstance(value, dict) else set()):
                yield from self.see(operation, value, part)
                break
        if isinstance(value, dict):
            for name, inner in value.items():
                yield from self.see_member(operation, name, inner, schema)
        elif isinstance(value, list) and isinstance(schema.get("items"), dict):
            for inner in value:
                yield from self.see(operation, inner, schema["items"])

    def see_member(self, operation, name, value, schema):
        part = schema.get("properties", {}).get(name)
        if part is None and "patternProperties" in schema and name not in schema.get("properties", {}):
            part = next(iter(schema["patternProperties"].values()))
        if part is None:
            part = schema.get("additionalProperties")
        if not isinstance(part, dict):
            return
        if "x-place" in part:
            self.shown.add(part["x-place"])
            if value is not None:
                self.filled.add(part["x-place"])
            if "x-only" in part and operation.name not in part["x-only"]:
                yield f"{part['x-place']} is only for {' '.join(part['x-only'])}"
        yield from self.see(operation, value, part)

    def faults(self, a):
        """What is wrong with an answer."""
        operation, status = self.doc.find(a["verb"], a["path"]), a["status"]
        word = a["body"].get("type", "").rsplit(":", 1)[-1] if a["type"] == "application/problem+json" and "body" in a else None
        if word:
            self.words.add(word)
        if not operation:
            if not word:
                yield "an answer to a request that is not described"
            elif word not in self.doc.raw["x-error-groups"]["transport"] + self.doc.raw["x-error-groups"]["identity"]:
                yield f"{word} to a request that is not described"
            return
        answer = self.doc.answer(operation, status)
        # The answer to HEAD has no body that says which.
        problem = a["type"] == "application/problem+json"
        if str(status) not in operation.raw["responses"] and not problem:
            yield "a status that is not described"
            return
        self.answers.add((str(operation), str(status)))
        if word and word not in self.doc.words_of(operation):
            yield f"{word} is not among its errors"
        if status < 400 and not {"anyone", a["role"]} & set(operation.roles):
            yield f"is not for {a['role']}"
        known = {**answer.get("headers", {}), **self.doc.raw["components"]["responses"]["Problem"]["headers"]} if problem else answer.get("headers", {})
        for name in a["headers"]:
            self.headers.add(name)
            if name not in known:
                yield f"the header {name} is not described"
        yield from self.body_faults(operation, answer, a)

    def body_faults(self, operation, answer, a):
        kinds = answer.get("content", {})
        if a["type"] == "" and (not kinds or "x-absent" in answer):
            return
        if a["type"] not in kinds:
            yield f"comes as {a['type'] or 'nothing'}"
        elif "json" in a["type"] and a["verb"] != "HEAD":
            validator, schema = self.schema(operation, a["status"], a["type"])
            found = False
            for error in validator.iter_errors(a.get("body")):
                found = True
                error = jsonschema.exceptions.best_match([error])
                yield f"{'.'.join(str(p) for p in error.absolute_path if not isinstance(p, int)) or 'the body'}: {error.message[:200]}"
            if not found:
                yield from self.see(operation, a.get("body"), schema)

    def read(self, folder):
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                for line in f:
                    # What kill -9 cut off.
                    if line.endswith("\n"):
                        self.take(name, line)

    def take(self, name, line):
        self.count += 1
        try:
            a = json.loads(line)
        except ValueError as e:
            self.wrong[f"{name}: an answer that is no JSON: {e}: {line[:300]}"] = 1
            return
        for fault in self.faults(a):
            operation = self.doc.find(a["verb"], a["path"])
            text = f"{operation or a['verb'] + ' ' + a['path']} {a['status']}: {fault}"
            self.wrong[text] = self.wrong.get(text, 0) + 1

    def missing(self):
        """What was never answered."""
        wanted, headers = set(), set()
        for operation in self.doc.operations:
            for status, answer in operation.raw["responses"].items():
                answer = self.doc.resolve(answer)
                headers |= set(answer.get("headers", {}))
                if status != "default":
                    wanted.add((str(operation), status))
                for kind in answer.get("content", {}):
                    self.expect(self.schema(operation, status, kind)[1])
        words = {word.rsplit(":", 1)[-1] for word in self.doc.raw["components"]["schemas"]["ErrorType"]["enum"]}
        gone = {f"{operation} {status}" for operation, status in wanted - self.answers}
        yield from sorted(gone)
        yield from (f"the error word {word}" for word in sorted(words - self.words))
        yield from (f"the header {name}" for name in sorted(headers - self.headers))
        lost = self.places - self.shown
        # Of what is not there its members are not, either.
        yield from (f"the property {place}" for place in sorted(lost) if not has_parent(place, lost | gone))
        yield from (f"the property {place} with a value" for place in sorted((self.valued & self.shown) - self.filled))


def has_parent(place, among):
    return any(place.startswith(f"{other}.") for other in among)


def is_nullable(schema):
    return "null" in schema.get("type", ()) and not isinstance(schema["type"], str) or any(
        part.get("type") == "null" for part in schema.get("oneOf", ()))


def main():
    checker = Checker()
    checker.read(sys.argv[1])
    missing = [f"never answered: {what}" for what in checker.missing()] if sys.argv[2:] == ["all"] else []
    wrong = [f"{text}{f' ({n} times)' if n > 1 else ''}" for text, n in checker.wrong.items()]
    print("\n".join(wrong[:SHOWN] + missing))
    if len(wrong) > SHOWN:
        print(f"and {len(wrong) - SHOWN} more")
    print(f"{checker.count} answers, {len(wrong)} faults of them against {checker.doc.path}, {len(missing)} never answered")
    return bool(wrong or missing)


sys.exit(main())
