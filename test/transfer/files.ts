import type { Format } from '../../src/contract/formats.ts'
import type { StoredPlant } from '../../src/contract/shapes.ts'
import type { Snapshot } from '../../src/store/store.ts'
import { type ExportForm, writePlants } from '../../src/transfer/export.ts'
import { decompress } from '../../src/transfer/gunzip.ts'
import type { Entry } from '../../src/transfer/lines.ts'
import { buildReader, readPlants } from '../../src/transfer/read.ts'

/** The entries of a file that comes in chunks of this size. */
export async function read(
  content: string | Buffer,
  size: number,
  format: Format,
  delimiter?: string,
): Promise<Entry[]> {
  const bytes = Buffer.from(content as string)
  async function* chunks() {
    for (let start = 0; start < bytes.length; start += size)
      yield bytes.subarray(start, start + size)
  }
  return (
    await Array.fromAsync(readPlants(decompress(chunks()), buildReader(format, delimiter)))
  ).flat()
}

/** Plants as a file, seven at a time. */
export async function write(plants: readonly StoredPlant[], form: ExportForm): Promise<string> {
  const snapshot = {
    async *walkPlants() {
      for (let start = 0; start < plants.length; start += 7) yield plants.slice(start, start + 7)
    },
  } as unknown as Snapshot
  const query = { ...form, after: undefined, tag: undefined, limit: undefined }
  return (await Array.fromAsync(writePlants(snapshot, query))).join('')
}
