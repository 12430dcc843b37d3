import type { StoredPlant } from '../contract/shapes.ts'

/** A plant as JSON, on one line: the id in all of its digits. */
export function toJson({ id, name, tag }: StoredPlant): string {
  const end = tag === undefined ? '}' : `,"tag":${JSON.stringify(tag)}}`
  return `{"id":${id},"name":${JSON.stringify(name)}${end}`
}
