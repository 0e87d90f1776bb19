"""Curves and heat maps as SVG, readable on light and dark pages. Standard library only."""
from html import escape

# Colours that differ in brightness too (after Okabe and Ito).
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8a7a00", "#7f7f7f"]
STYLE = """<style>
text { font: 12px sans-serif; fill: #333 } .small { font-size: 11px } .title { font-size: 14px; font-weight: bold }
.axis { stroke: #777; fill: none } .grid { stroke: #999; stroke-opacity: .3 } .cell { fill: #111 }
@media (prefers-color-scheme: dark) { text { fill: #ccc } .cell { fill: #111 } }
</style>"""


def document(width, height, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return "\n".join([head, STYLE, *parts, "</svg>"]) + "\n"


def text(x, y, words, anchor="start", kind="", more=""):
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{kind}{more}>{escape(str(words))}</text>'


def thin(points, most=240):
    """At most about `most` points; the last one stays."""
    step = max(1, len(points) // most)
    kept = points[::step]
    return kept if kept[-1] == points[-1] else kept + [points[-1]]


def curves(title, x_label, y_label, series, y_range, y_step, target=None):
    """series: [(name, [(x, y), ...])]; y beyond the range is drawn at its border."""
    left, top, plot_w, plot_h = 60, 34, 470, 270
    x_most = max(x for _, points in series for x, _ in points)
    step = next(s * 10**e for e in range(8) for s in (1, 2, 5) if x_most / (s * 10**e) <= 8)
    y_low, y_high = y_range

    def at(x, y):
        y = min(max(y, y_low), y_high)
        return left + plot_w * x / x_most, top + plot_h * (y_high - y) / (y_high - y_low)

    parts = [text(left, 20, title, kind="title")]
    for i in range(int(x_most / step) + 1):
        x, _ = at(i * step, y_low)
        parts.append(f'<path class="grid" d="M{x:.1f} {top}V{top + plot_h}"/>')
        parts.append(text(x, top + plot_h + 17, i * step, "middle", "small"))
    for i in range(round((y_high - y_low) / y_step) + 1):
        _, y = at(0, y_low + i * y_step)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{left + plot_w}"/>')
        parts.append(text(left - 6, y + 4, f"{y_low + i * y_step:g}", "end", "small"))
    parts.append(f'<path class="axis" d="M{left} {top}V{top + plot_h}H{left + plot_w}"/>')
    if target is not None:
        _, y = at(0, target)
        parts.append(f'<path class="axis" stroke-dasharray="5 4" d="M{left} {y:.1f}H{left + plot_w}"/>')
    parts.append(text(left + plot_w / 2, top + plot_h + 36, x_label, "middle"))
    y = top + plot_h / 2
    parts.append(text(16, y, y_label, "middle", more=f' transform="rotate(-90 16 {y:.0f})"'))
    for number, (name, points) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        line = "L".join("%.1f %.1f" % at(x, y) for x, y in thin(points))
        dashes = ' stroke-dasharray="6 3"' if number >= len(COLOURS) else ""
        parts.append(f'<path fill="none" stroke="{colour}" stroke-width="1.6"{dashes} d="M{line}"/>')
        y = top + 10 + 17 * number
        parts.append(f'<path stroke="{colour}" stroke-width="3"{dashes} d="M{left + plot_w + 14} {y - 4}h18"/>')
        parts.append(text(left + plot_w + 38, y, name, kind="small"))
    return document(left + plot_w + 250, max(top + plot_h + 48, top + 20 + 17 * len(series)), parts)


def shade(value, low, high):
    """Dark red (low) over yellow to green (high)."""
    share = min(max((value - low) / (high - low), 0), 1)
    stops = [(0.0, (213, 94, 60)), (0.5, (247, 222, 140)), (1.0, (120, 190, 130))]
    for (a, first), (b, second) in zip(stops, stops[1:]):
        if share <= b:
            t = (share - a) / (b - a)
            return "#" + "".join("%02x" % round(p + (q - p) * t) for p, q in zip(first, second))
    return "#78be82"


def heat_map(title, rows, columns, cells, low, high, note):
    """cells[row][column]: (value or None, text). Values below low are as red, above high as green as it gets."""
    left, top, cell_w, cell_h = 190, 118, 62, 26
    width, height = left + cell_w * len(columns) + 80, top + cell_h * len(rows) + 30
    parts = [text(8, 20, title, kind="title")]
    for c, name in enumerate(columns):
        x, y = left + cell_w * c + cell_w / 2, top - 8
        parts.append(text(x, y, name, more=f' transform="rotate(-35 {x:.0f} {y})"'))
    for r, name in enumerate(rows):
        y = top + cell_h * r
        parts.append(text(left - 8, y + cell_h / 2 + 4, name, "end"))
        for c in range(len(columns)):
            value, words = cells[r][c]
            colour = "#bbbbbb" if value is None else shade(value, low, high)
            x = left + cell_w * c
            parts.append(f'<rect x="{x}" y="{y}" width="{cell_w - 2}" height="{cell_h - 2}" fill="{colour}"/>')
            parts.append(text(x + cell_w / 2 - 1, y + cell_h / 2 + 4, words, "middle", "cell small"))
    parts.append(text(8, height - 8, note, kind="small"))
    return document(width, height, parts)
