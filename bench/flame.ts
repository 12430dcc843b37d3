/** A flame graph of a CPU profile: callers above callees, each as wide as the time it took. */
import { toSafe } from './plot.ts'

/** The part of Node's --cpu-prof format that is read here. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string }
    readonly children?: readonly number[]
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

/** A function at one position in the call tree. */
export interface Frame {
  readonly name: string
  readonly room: string
  readonly selfUs: number
  readonly totalUs: number
  readonly children: readonly Frame[]
}

const width = 1_200
const rowHeight = 17
const minBoxWidth = 1.5
const letterWidth = 6.2

/** The call tree, without idle time. */
export function toFrames({ nodes, samples, timeDeltas }: CpuProfile): Frame {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const selfUs = new Map<number, number>()
  samples.forEach((id, index) => {
    selfUs.set(id, (selfUs.get(id) ?? 0) + (timeDeltas[index] ?? 0))
  })

  function build(id: number): Frame {
    const node = byId.get(id)
    const { functionName = '', url = '' } = node?.callFrame ?? {}
    const isIdle = functionName === '(idle)'
    const children = (node?.children ?? []).map(build).filter(({ totalUs }) => totalUs > 0)
    const self = isIdle ? 0 : (selfUs.get(id) ?? 0)
    const totalUs = children.reduce((sum, child) => sum + child.totalUs, self)
    return {
      name: functionName || '(anonymous)',
      room: toRoom(url),
      selfUs: self,
      totalUs,
      children,
    }
  }

  return build(nodes[0]?.id ?? 0)
}

/** The part of the program that a file belongs to. */
function toRoom(url: string): string {
  const own = /\/(?:src|dist)\/([^/]+)/.exec(url)?.[1]
  const dependency = /\/node_modules\/([^/]+)/.exec(url)?.[1]
  if (dependency !== undefined) return dependency
  if (own !== undefined) return `src/${own}`
  return url.startsWith('node:') ? 'Node.js' : 'native'
}

/** The self time of each part of the program, longest first. */
export function sumByRoom(root: Frame): [room: string, selfUs: number][] {
  const sums = new Map<string, number>()
  function add({ room, selfUs, children }: Frame): void {
    sums.set(room, (sums.get(room) ?? 0) + selfUs)
    for (const child of children) add(child)
  }
  add(root)
  return [...sums].filter(([, us]) => us > 0).sort(([, a], [, b]) => b - a)
}

/** Draws the tree, without the boxes that are too narrow to see. */
export function drawFlame(title: string, root: Frame): string {
  const boxes: string[] = []
  let rows = 0

  function draw(frame: Frame, left: number, row: number): void {
    const boxWidth = (frame.totalUs / root.totalUs) * width
    if (boxWidth < minBoxWidth) return
    rows = Math.max(rows, row + 1)
    boxes.push(drawBox(frame, left, row, boxWidth))
    let childLeft = left
    for (const child of frame.children.toSorted((a, b) => b.totalUs - a.totalUs)) {
      draw(child, childLeft, row + 1)
      childLeft += (child.totalUs / root.totalUs) * width
    }
  }

  function drawBox({ name, room, totalUs }: Frame, left: number, row: number, boxWidth: number) {
    const share = ((totalUs / root.totalUs) * 100).toFixed(1)
    const letters = Math.floor((boxWidth - 6) / letterWidth)
    const top = row * rowHeight
    const text = toSafe(name.slice(0, letters))
    const label =
      letters > 3 ? `<text x="${(left + 3).toFixed(1)}" y="${top + 12}">${text}</text>` : ''
    const box =
      `<rect x="${left.toFixed(1)}" y="${top}" width="${boxWidth.toFixed(1)}" ` +
      `height="${rowHeight - 1}" fill="${toColour(room)}"/>`
    return `<g><title>${toSafe(`${name} (${room}), ${share} %`)}</title>${box}${label}</g>`
  }

  draw(root, 0, 0)
  const height = rows * rowHeight + 28
  const font = 'font-family="sans-serif" font-size="11"'
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" ${font}>
<title>${toSafe(title)}</title>
<rect width="${width}" height="${height}" fill="#fff"/>
<text x="4" y="16" font-size="13">${toSafe(title)}</text>
<g transform="translate(0 24)">
${boxes.join('\n')}
</g>
</svg>
`
}

function toColour(room: string): string {
  if (room.startsWith('src/')) return '#8fce7e'
  if (room === 'Node.js') return '#f2c879'
  return room === 'native' ? '#d9d9d9' : '#9dbfe8'
}
