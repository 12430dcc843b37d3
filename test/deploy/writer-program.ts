/**
 * Creates plants until its standard input ends, and prints the id of each one that the service has
 * acknowledged. Requests that fail are not repeated: their ids are left out.
 */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const connections = 8
const [, , url = '', firstId = '1'] = process.argv
const agent = new Agent({ keepAlive: true, maxSockets: connections })
const headers = {
  Authorization: `Bearer ${process.env.TOKEN}`,
  'Content-Type': 'application/json',
}
let nextId = Number(firstId)
let isStopping = false

function create(id: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const sent = request(`${url}/plants`, { method: 'POST', headers, agent, timeout: 20_000 })
    sent.on('response', (answer) => {
      answer.resume().on('close', () => resolve(answer.complete ? answer.statusCode : undefined))
    })
    sent.on('timeout', () => sent.destroy())
    sent.on('error', () => resolve(undefined))
    sent.end(JSON.stringify({ id, name: `Plant ${id}` }))
  })
}

async function write(): Promise<void> {
  while (!isStopping) {
    const id = nextId++
    const status = await create(id)
    if (status === 200) process.stdout.write(`${id}\n`)
    // The service is being restarted.
    else await sleep(20)
  }
}

process.stdin.resume().on('end', () => {
  isStopping = true
})
await Promise.all(Array.from({ length: connections }, write))
agent.destroy()
