import { get } from 'node:http'
import type { Lab, Served } from './lab.ts'

/** Something that can be started. */
export interface Starter {
  readonly name: string
  start(): Promise<Served>
}

/** The milliseconds from the start of each process until it has answered that it is ready, in rounds. */
export async function alternateStarts(
  lab: Lab,
  starters: readonly Starter[],
  rounds: number,
): Promise<number[][]> {
  const times = starters.map((): number[] => [])
  // The first round is not counted: it fills the caches of the disk and of compiled code.
  for (let round = 0; round <= rounds; round++) {
    lab.progress(`starts: round ${round} of ${rounds}`)
    for (let turn = 0; turn < starters.length; turn++) {
      const index = (round + turn) % starters.length
      const startedAt = performance.now()
      const served = await (starters[index] as Starter).start()
      await readReadiness(served.port)
      if (round > 0) times[index]?.push(performance.now() - startedAt)
      await served.stop()
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
