import type { Event, ImportReport, Plant, RefusedLine, StoredPlant } from '../contract/shapes.ts'

declare global {
  interface JSON {
    /** Text for `stringify` to write as it is. TypeScript does not declare it yet. */
    rawJSON(text: string): unknown
  }
}

/** A plant as JSON on one line, with all digits of its id. */
export function toJson(plant: Plant | StoredPlant): string {
  return JSON.stringify(toWritable(plant))
}

/** Plants as a JSON array. One call of `stringify` is fastest. */
export function toJsonArray(plants: readonly StoredPlant[]): string {
  return JSON.stringify(plants.map(toWritable))
}

/** The report of an import as JSON, with all digits of its ids. */
export function toReportJson(report: ImportReport): string {
  return JSON.stringify({ ...report, refused: report.refused.map(toWritableLine) })
}

function toWritableLine({ line, id, ...rest }: RefusedLine) {
  return { line, id: id === undefined ? undefined : toWritableId(id), ...rest }
}

/** An event as the store has it. */
interface StoredEvent extends Pick<Event, 'position' | 'type'> {
  readonly at: number
  readonly plantJson: string
}

/** An event as JSON on one line. Only the plant, which is JSON already, could need escapes. */
export function toEventJson({ position, type, at, plantJson }: StoredEvent): string {
  return `{"position":"${position}","type":"${type}","at":"${toTime(at)}","plant":${plantJson}}`
}

/** Events as a JSON array. */
export function toEventArray(events: readonly StoredEvent[]): string {
  return `[${events.map(toEventJson).join(',')}]`
}

let lastAt = 0
let lastTime = new Date(lastAt).toISOString()

/** A time as text. Remembers the last one, because all changes of a commit share it. */
function toTime(at: number): string {
  if (at !== lastAt) lastTime = new Date(at).toISOString()
  lastAt = at
  return lastTime
}

/** Only the members of a plant. `stringify` omits an absent tag. */
function toWritable(plant: Plant | StoredPlant) {
  const { name, tag } = plant
  return 'id' in plant ? { id: toWritableId(plant.id), name, tag } : { name, tag }
}

const largestSafe = BigInt(Number.MAX_SAFE_INTEGER)

function toWritableId(id: bigint): unknown {
  return id <= largestSafe && id >= -largestSafe ? Number(id) : JSON.rawJSON(String(id))
}
