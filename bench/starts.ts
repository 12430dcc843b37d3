import { get } from 'node:http'
import type { Lab, Server } from './lab.ts'

/** A program whose start is measured. */
export interface Starter {
  readonly name: string
  start(): Promise<Server>
}

/** Starts programs in turn; returns the milliseconds until each reported that it was ready. */
export async function alternateStarts(
  lab: Lab,
  starters: readonly Starter[],
  rounds: number,
): Promise<number[][]> {
  const times = starters.map((): number[] => [])
  // Round 0 is not counted: it fills the disk cache and the cache of compiled code.
  for (let round = 0; round <= rounds; round++) {
    lab.progress(`starts: round ${round} of ${rounds}`)
    for (let turn = 0; turn < starters.length; turn++) {
      const index = (round + turn) % starters.length
      const startedAt = performance.now()
      const server = await (starters[index] as Starter).start()
      await readReadiness(server.port)
      if (round > 0) times[index]?.push(performance.now() - startedAt)
      await server.stop()
    }
  }
  return times
}

function readReadiness(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1', path: '/readyz', agent: false }, (answer) => {
      answer.resume().on('end', () => {
        if (answer.statusCode === 200) resolve()
        else reject(new Error(`not ready: ${answer.statusCode}`))
      })
    }).on('error', reject)
  })
}
