/**
 * Creates plants until its standard input ends, and prints the id of each one that the service has
 * acknowledged. Requests that fail are not repeated: their ids are left out.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { PlantStore } from '../../client/index.ts'

const [, , url = '', firstId = '1'] = process.argv
const { TOKEN: token = '' } = process.env
const store = new PlantStore({ url, token, retries: 0, timeoutMs: 20_000 })
let nextId = BigInt(firstId)
let isStopping = false

async function write(): Promise<void> {
  while (!isStopping) {
    const id = nextId++
    await store.create({ id, name: `Plant ${id}` }).then(
      () => process.stdout.write(`${id}\n`),
      // The service is being restarted.
      () => sleep(20),
    )
  }
}

process.stdin.resume().on('end', () => {
  isStopping = true
})
await Promise.all(Array.from({ length: 8 }, write))
