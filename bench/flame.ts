/** A flame graph of a CPU profile: who called whom from the top down, each as wide as the time that it took. */
import { toSafe } from './plot.ts'

/** What Node.js writes with --cpu-prof, as far as it is read here. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string }
    readonly children?: readonly number[]
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

/** A function as it was called from one place. Times are in microseconds. */
export interface Frame {
  readonly name: string
  readonly room: string
  readonly selfUs: number
  readonly totalUs: number
  readonly children: readonly Frame[]
}

const width = 1_200
const rowHeight = 17
const narrowest = 1.5
const letterWidth = 6.2

/** The tree of calls, without the time in which nothing was done. */
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

/** Which part of the whole a file belongs to. */
function toRoom(url: string): string {
  const own = /\/(?:src|dist)\/([^/]+)/.exec(url)?.[1]
  const dependency = /\/node_modules\/([^/]+)/.exec(url)?.[1]
  if (dependency !== undefined) return dependency
  if (own !== undefined) return `src/${own}`
  return url.startsWith('node:') ? 'Node.js' : 'native'
}

/** How long each part of the whole took by itself, the longest first. */
export function sumByRoom(root: Frame): [room: string, selfUs: number][] {
  const sums = new Map<string, number>()
  function add({ room, selfUs, children }: Frame): void {
    sums.set(room, (sums.get(room) ?? 0) + selfUs)
    for (const child of children) add(child)
  }
  add(root)
  return [...sums].filter(([, us]) => us > 0).sort(([, a], [, b]) => b - a)
}

/** Draws the tree. What is too narrow to be seen is left out. */
export function drawFlame(title: string, root: Frame): string {
  const boxes: string[] = []
  let rows = 0

  function draw(frame: Frame, left: number, row: number): void {
    const boxWidth = (frame.totalUs / root.totalUs) * width
    if (boxWidth < narrowest) return
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
    const label =
      letters > 3
        ? `<text x="${(left + 3).toFixed(1)}" y="${row * rowHeight + 12}">${toSafe(name.slice(0, letters))}</text>`
        : ''
    return `<g><title>${toSafe(`${name} (${room}), ${share} %`)}</title><rect x="${left.toFixed(1)}" y="${row * rowHeight}" width="${boxWidth.toFixed(1)}" height="${rowHeight - 1}" fill="${toColour(room)}"/>${label}</g>`
  }

  draw(root, 0, 0)
  const height = rows * rowHeight + 28
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">
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
