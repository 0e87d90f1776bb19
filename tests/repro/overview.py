"""overview.py: writes docs/overview.svg, the picture of the README. Standard library only."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import svg  # noqa: E402

PATH = "docs/overview.svg"
WIDTH, HEIGHT = 760, 330
ARROWS = (
    '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0L8 4L0 8Z" fill="#777"/></marker></defs>'
)


def box(x, y, width, height, title, lines, colour):
    """A titled rectangle with small lines in it."""
    parts = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{colour}" fill-opacity=".14" stroke="{colour}"/>']
    parts.append(svg.text(x + width / 2, y + 20, title, "middle", "title"))
    return parts + [svg.text(x + width / 2, y + 38 + 16 * i, line, "middle", "small") for i, line in enumerate(lines)]


def arrow(x1, y1, x2, y2):
    return f'<path class="axis" marker-end="url(#end)" d="M{x1} {y1}L{x2} {y2}"/>'


def main():
    blue, orange, green, pink = svg.COLOURS[:4]
    parts = [ARROWS]
    devices = (("gateway", "a pump's CSV stays here"), ("clinic's PC", "pictures stay here"), ("Jetson", "your loop, your data"))
    for i, (name, data) in enumerate(devices):
        y = 40 + 95 * i
        parts += box(10, y, 150, 78, name, [data, "a signing key of its own"], blue)
        parts += [arrow(164, y + 28, 318, 128 + 24 * i), arrow(318, 138 + 24 * i, 164, y + 46)]
    parts.append(svg.text(85, 24, "devices, behind NAT", "middle"))
    parts.append(svg.text(240, 24, "HTTPS out, mutual TLS", "middle"))
    parts.append(svg.text(240, 78, "signed delta", "middle", "small"))
    parts.append(svg.text(240, 286, "new model", "middle", "small"))
    parts += box(322, 96, 160, 128, "rivuletd", ["checks signatures, limits", "averages each round", "goes on after a kill", "REST: status, figures", "keeps a signed record"], orange)
    outs = (("caches, mirrors", "models as files, by hash", green), ("PyTorch, ONNX", "safetensors, named tensors", green), ("rivulet verify", "proves any model, offline", pink))
    for i, (name, line, colour) in enumerate(outs):
        y = 46 + 95 * i
        parts += box(560, y, 190, 60, name, [line], colour)
        parts.append(arrow(486, 150 + 15 * i, 556, y + 30))
    parts.append(svg.text(521, 268, "record", "middle", "small"))
    with open(PATH, "w", encoding="utf-8") as f:
        f.write(svg.document(WIDTH, HEIGHT, parts))


if __name__ == "__main__":
    main()
