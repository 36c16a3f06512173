"""Small line charts as SVG text, without dependencies: a few kilobytes each, for documents."""
import html
import math

COLORS = ["#33658a", "#b35900", "#2e7d4f", "#8a3b6e", "#6b6b1f", "#444444", "#1f8a8a", "#b33939"]


def ticks(low, high, count=5):
    """Round numbers within an interval, about `count` of them."""
    step = 10 ** math.floor(math.log10((high - low) / count))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= count + 0.5)
    first = math.ceil(low / step - 1e-9)
    return [first * step + i * step for i in range(int((high - first * step) / step + 1e-9) + 1)]


class Chart:
    """One plot. `x_range` and `y_range` are in data units; `size` is the plotting area in
    pixels."""

    LEFT, TOP, RIGHT, BOTTOM = 62, 30, 14, 52

    def __init__(self, title, x_range, y_range, x_name, y_name, size=300, axes=True, x_labels=None):
        self.width, self.height = size if isinstance(size, tuple) else (size, size)
        self.title, self.x_range, self.y_range = title, x_range, y_range
        self.x_name, self.y_name, self.axes, self.x_labels = x_name, y_name, axes, x_labels
        self.shapes, self.labels, self.legend = [], [], []

    def right(self):
        """Pixels right of the plotting area: the legend."""
        return (self.RIGHT
                + (30 + 6 * max(len(name) for name, _ in self.legend) if self.legend else 0))

    def at(self, x, y):
        (x0, x1), (y0, y1) = self.x_range, self.y_range
        return f"{(x - x0) / (x1 - x0) * self.width:.1f},{(y1 - y) / (y1 - y0) * self.height:.1f}"

    def polygon(self, points, fill):
        self.shapes.append(f'<polygon points="{" ".join(self.at(*p) for p in points)}" '
                           f'fill="{fill}"/>')

    def line(self, points, color, width=1.5, name="", legend=True):
        title = f"<title>{html.escape(name)}</title>" if name else ""
        self.shapes.append(f'<polyline points="{" ".join(self.at(*p) for p in points)}" '
                           f'fill="none" stroke="{color}" '
                           f'stroke-width="{width}">{title}</polyline>')
        if name and legend:
            self.legend.append((name, color))

    def arc(self, start, end, color, width, name):
        """A half ellipse above the lower edge from `start` to `end` of the x axis."""
        low = self.y_range[0]
        (x0, y0), (x1, _) = (map(float, self.at(x, low).split(","))
                             for x in (min(start, end), max(start, end)))
        high = min(self.height, (x1 - x0) / 2)
        self.shapes.append(f'<path d="M{x0:.1f},{y0:.1f}A{(x1 - x0) / 2:.1f},{high:.1f} 0 0 1 '
                           f'{x1:.1f},{y0:.1f}" fill="none" stroke="{color}" '
                           f'stroke-width="{width:.2f}">'
                           f"<title>{html.escape(name)}</title></path>")

    def label(self, x, y, text, below=False):
        px, py = map(float, self.at(x, y).split(","))
        if below:
            self.labels.append(f'<text transform="translate({px:.1f},{py + 10:.1f}) '
                               f'rotate(40)">{html.escape(text)}</text>')
        else:
            self.labels.append(f'<text x="{px:.1f}" y="{py + 3:.1f}" '
                               f'text-anchor="middle">{html.escape(text)}</text>')

    def svg(self, clip):
        out = [f'<clipPath id="{clip}"><rect width="{self.width}" '
               f'height="{self.height}"/></clipPath>',
               f'<text x="0" y="-12" font-weight="bold">{html.escape(self.title)}</text>',
               f'<g clip-path="url(#{clip})">', *self.shapes, "</g>", *self.labels]
        if self.axes:
            out.append(f'<rect width="{self.width}" height="{self.height}" fill="none" '
                       'stroke="#888"/>')
            for x in [] if self.x_labels else ticks(*self.x_range):
                px = self.at(x, self.y_range[0]).split(",")[0]
                out.append(f'<text x="{px}" y="{self.height + 14}" '
                           f'text-anchor="middle">{x:g}</text>')
            for place, text in enumerate(self.x_labels or []):
                px = self.at(place, self.y_range[0]).split(",")[0]
                out.append(f'<text transform="translate({px},{self.height + 12}) '
                           f'rotate(40)">{html.escape(text)}</text>')
            for y in ticks(*self.y_range):
                py = float(self.at(self.x_range[0], y).split(",")[1])
                out.append(f'<text x="-6" y="{py + 3:.1f}" text-anchor="end">{y:g}</text><path '
                           f'd="M0,{py:.1f}h{self.width}" stroke="#888" stroke-opacity="0.2"/>')
            out.append(f'<text x="{self.width / 2}" y="{self.height + 34}" '
                       f'text-anchor="middle">{html.escape(self.x_name)}</text>')
            out.append(f'<text transform="translate(-40,{self.height / 2}) rotate(-90)" '
                       f'text-anchor="middle">{html.escape(self.y_name)}</text>')
        for place, (name, color) in enumerate(self.legend):
            y = 14 + 14 * place
            out.append(f'<path d="M{self.width + 10},{y - 4}h16" stroke="{color}" '
                       f'stroke-width="2"/><text x="{self.width + 30}" '
                       f'y="{y}">{html.escape(name)}</text>')
        return "\n".join(out)


def write(path, charts):
    """Writes charts side by side into one file."""
    width = sum(c.width + Chart.LEFT + c.right() for c in charts)
    height = max(c.height for c in charts) + Chart.TOP + Chart.BOTTOM
    out, x = [], 0
    for place, chart in enumerate(charts):
        out.append(
            f'<g transform="translate({x + Chart.LEFT},{Chart.TOP})">{chart.svg(f"c{place}")}</g>')
        x += chart.width + Chart.LEFT + chart.right()
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                    f'width="{width}" height="{height}" '
                    'font-family="sans-serif" font-size="10" fill="#222">\n'
                    '<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(out)
                    + "\n</svg>\n", encoding="utf-8")
