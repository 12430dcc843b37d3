/** A small SVG plot that can be read on light and dark pages: bars for each figure. */
import { type Figure, toText } from './section.ts'

const [labelEnd, barWidth, barHeight, rowHeight, headHeight] = [200, 330, 15, 20, 34]
const width = labelEnd + barWidth + 80
const style = `
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 }
.ours { fill: #2a7d4f } .other { fill: #8c959f }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .ours { fill: #4fbf83 } .other { fill: #768390 }
}`

/** One group of bars for each figure, each group with a scale of its own. */
export function plotFigures(title: string, figures: readonly Figure[]): string {
  const parts: string[] = []
  let top = 0
  for (const { title: name, values } of figures) {
    parts.push(`<text class="title" x="10" y="${top + 22}">${toSafe(name)}</text>`)
    top += headHeight
    const max = Math.max(...Object.values(values))
    for (const [system, value] of Object.entries(values)) {
      parts.push(drawBar(system, value, { length: (value / max) * barWidth, top }))
      top += rowHeight
    }
  }
  const size = `viewBox="0 0 ${width} ${top + 10}" width="${width}"`
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="${toSafe(title)}">
<style>${style}
</style>
${parts.join('\n')}
</svg>
`
}

function drawBar(
  system: string,
  value: number,
  { length, top }: { length: number; top: number },
): string {
  const kind = system.startsWith('Plant Store') ? 'ours' : 'other'
  const place = `x="${labelEnd}" y="${top}" width="${length.toFixed(1)}" height="${barHeight}"`
  const [y, end] = [top + 12, (labelEnd + length + 6).toFixed(1)]
  return [
    `<text x="${labelEnd - 10}" y="${y}" text-anchor="end">${toSafe(system)}</text>`,
    `<rect class="${kind}" ${place} rx="2"/>`,
    `<text x="${end}" y="${y}">${toText(value)}</text>`,
  ].join('\n')
}

function toSafe(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
