"""Prints where JUnit files break the schema of Jenkins (its junit-10.xsd). Usage: junit.py FILE…"""

import sys
import xml.etree.ElementTree as ElementTree

ATTRIBUTES = {
    "testsuite": ({"name", "tests"}, {"failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"}),
    "testcase": ({"name", "classname"}, {"time", "assertions", "status"}),
    "failure": (set(), {"type", "message"}),
    "error": (set(), {"type", "message"}),
    "skipped": (set(), {"type", "message"}),
}
CHILDREN = {"testsuite": {"testcase"}, "testcase": {"failure", "error", "skipped"}, "failure": set(), "error": set(),
            "skipped": set()}


def wrong(element):
    if element.tag not in ATTRIBUTES:
        yield f"there is no element {element.tag}"
        return
    needed, allowed = ATTRIBUTES[element.tag]
    names = set(element.attrib)
    for name in needed - names:
        yield f"{element.tag} has no {name}"
    for name in names - needed - allowed:
        yield f"{element.tag} has {name}"
    for name in names & {"tests", "failures", "errors", "skipped"}:
        if not element.attrib[name].isdigit():
            yield f"{name} is {element.attrib[name]}"
    if "time" in names:
        float(element.attrib["time"])
    for child in element:
        if child.tag not in CHILDREN[element.tag]:
            yield f"{element.tag} holds {child.tag}"
        yield from wrong(child)


def counts(suite):
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        if suite.attrib.get(name) != str(len(list(suite.iter(tag)))):
            yield f"{name} is {suite.attrib.get(name)}, and there are {len(list(suite.iter(tag)))}"


for file in sys.argv[1:]:
    root = ElementTree.parse(file).getroot()
    found = [*wrong(root), *counts(root)]
    if root.tag != "testsuite":
        found.append(f"it begins with {root.tag}")
    for one in found:
        print(f"{file}: {one}")
