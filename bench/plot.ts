/** Small SVG plots that can be read on light and dark pages. */

export interface Bar {
  readonly title: string
  readonly value: number
  readonly kind: 'ours' | 'other' | 'ceiling'
}

/** Horizontal bars. A bar longer than the axis is cut and marked with an ellipsis. */
export function plotBars(title: string, bars: readonly Bar[], max: number): string {
  const [left, width, rowHeight, top] = [310, 330, 26, 40]
  const rows = bars.map(({ title: name, value, kind }, index) => {
    const y = top + index * rowHeight
    const isCut = value > max
    const length = Math.max(2, (Math.min(value, max) / max) * width)
    const number = Math.round(value).toLocaleString('en')
    const label = `${isCut ? '… ' : ''}${number}`
    const size = `width="${length.toFixed(1)}" height="18"`
    return [
      `<text x="${left - 10}" y="${y + 13}" text-anchor="end">${toSafe(name)}</text>`,
      `<rect class="${kind}" x="${left}" y="${y}" ${size} rx="2"/>`,
      `<text x="${(left + length + 6).toFixed(1)}" y="${y + 13}">${label}</text>`,
    ].join('\n')
  })
  return toSvg(title, [left + width + 80, top + bars.length * rowHeight + 10], rows)
}

export interface Line {
  readonly title: string
  readonly values: readonly number[]
}

/** Lines over labelled points from 0 to `max`, with one horizontal reference line. */
export function plotLines(title: string, { labels, lines, reference, max }: LinePlot): string {
  const [left, right, top, height, step] = [50, 210, 45, 190, 200]
  const toX = (index: number) => left + index * step
  const toY = (value: number) => top + height - (Math.min(value, max) / max) * height
  const end = toX(labels.length - 1)
  const titleYs = spread(
    lines.map(({ values }) => toY(values.at(-1) ?? 0)),
    16,
  )
  const parts = [
    ...[0, reference].map(
      (value) =>
        `<line class="axis" x1="${left}" x2="${end}" y1="${toY(value)}" y2="${toY(value)}"/>
<text x="${left - 8}" y="${toY(value) + 4}" text-anchor="end">${value}</text>`,
    ),
    ...labels.map((label, index) => {
      const position = `x="${toX(index)}" y="${top + height + 20}"`
      return `<text ${position} text-anchor="middle">${toSafe(label)}</text>`
    }),
    ...lines.map(({ title: name, values }, index) => {
      const points = values
        .map((value, point) => `${toX(point)},${toY(value).toFixed(1)}`)
        .join(' ')
      return `<polyline class="line line${index}" points="${points}"/>
<text x="${end + 10}" y="${(titleYs[index] ?? 0) + 4}" class="label${index}">${toSafe(name)}</text>`
    }),
  ]
  return toSvg(title, [end + right, top + height + 35], parts)
}

export interface LinePlot {
  readonly labels: readonly string[]
  readonly lines: readonly Line[]
  readonly reference: number
  readonly max: number
}

/** Moves positions apart until neighbours are at least this far from each other. */
function spread(positions: readonly number[], distance: number): number[] {
  const order = positions.map((position, index) => ({ position, index }))
  order.sort((a, b) => a.position - b.position)
  const moved: number[] = []
  let last = Number.NEGATIVE_INFINITY
  for (const { position, index } of order) {
    last = Math.max(position, last + distance)
    moved[index] = last
  }
  return moved
}

const colours = ['#2a7d4f', '#3a6ea8', '#b0621b', '#7a52a3', '#a03a4a', '#5c7a1f']
const lineRules = colours.map(
  (colour, index) => `.line${index} { stroke: ${colour} } .label${index} { fill: ${colour} }`,
)
const style = `
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 14px }
.ours { fill: #2a7d4f } .other { fill: #8c959f } .ceiling { fill: #d0d7de }
.axis { stroke: #8c959f; stroke-dasharray: 3 3 }
.line { fill: none; stroke-width: 2 }
${lineRules.join('\n')}
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .ours { fill: #4fbf83 } .other { fill: #768390 } .ceiling { fill: #444c56 }
}`

function toSvg(title: string, [width, height]: [number, number], parts: readonly string[]): string {
  const size = `viewBox="0 0 ${width} ${height}" width="${width}"`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${toSafe(title)}">
<style>${style}
</style>
<text class="title" x="10" y="20">${toSafe(title)}</text>
${parts.join('\n')}
</svg>
`
}

export function toSafe(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
