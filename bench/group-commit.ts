/**
 * What the group commit gains: durable creates over 64 connections, with one commit for a whole batch and with one
 * commit for each request. Both services run in turn, in slices, so that a noisy machine disturbs both alike.
 *
 *   node bench/group-commit.ts
 */
import { fork } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const connections = 64
const slices = 12
const sliceMs = 500
const token = 'a-token-for-the-benchmark'

interface Subject {
  readonly title: string
  readonly port: number
  readonly measure: () => Promise<{ cpuMicroseconds: number; creates: number }>
  readonly stop: () => void
}

const server = fileURLToPath(new URL('group-commit-server.ts', import.meta.url))

async function startSubject(title: string, batchWrites: number, folder: string): Promise<Subject> {
  const path = join(folder, `${batchWrites}.db`)
  const child = fork(server, [path, String(batchWrites), token], { stdio: 'inherit' })
  const ask = <Reply>(question: string) =>
    new Promise<Reply>((resolve) => {
      child.once('message', (reply) => resolve(reply as Reply))
      child.send(question)
    })
  const { port } = await ask<{ port: number }>('port')
  let nextId = 0

  async function measure() {
    const before = await ask<number>('cpu')
    const first = nextId
    nextId = await load(port, nextId)
    const creates = nextId - first
    return { cpuMicroseconds: (await ask<number>('cpu')) - before, creates }
  }

  return { title, port, measure, stop: () => child.kill() }
}

/** Creates plants over every connection until the time is over; answers the id after the last one. */
async function load(port: number, firstId: number): Promise<number> {
  let id = firstId
  const end = performance.now() + sliceMs
  await Promise.all(Array.from({ length: connections }, () => drive()))
  return id

  function drive(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', send)
      socket.setNoDelay(true)
      socket.on('error', reject)
      socket.on('close', () => resolve())
      socket.on('data', (bytes) => {
        if (!bytes.toString('latin1', 0, 12).endsWith('200')) reject(new Error(bytes.toString()))
        if (performance.now() < end) send()
        else socket.destroy()
      })
      function send(): void {
        const body = `{"id":${id++},"name":"Monstera deliciosa","tag":"indoor"}`
        socket.write(
          `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        )
      }
    })
  }
}

const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
const subjects = [
  await startSubject('group commit', 512, folder),
  await startSubject('a commit per request', 1, folder),
]
const rates = subjects.map((): number[] => [])
const costs = subjects.map((): number[] => [])
for (const subject of subjects) await subject.measure()
for (let slice = 0; slice < slices; slice++) {
  for (const [index, subject] of subjects.entries()) {
    const { creates, cpuMicroseconds } = await subject.measure()
    rates[index]?.push(creates / (sliceMs / 1000))
    costs[index]?.push(cpuMicroseconds / creates)
  }
}
const median = (values: number[] = []) => values.sort((a, b) => a - b)[values.length >> 1] ?? 0
for (const [index, { title }] of subjects.entries()) {
  const rate = Math.round(median(rates[index])).toLocaleString('en')
  console.log(
    `${title.padEnd(22)} ${rate.padStart(7)} creates/s  ${median(costs[index]).toFixed(1)} µs of CPU each`,
  )
}
console.log(`ratio                  ${(median(rates[0]) / median(rates[1])).toFixed(2)}`)
for (const subject of subjects) subject.stop()
rmSync(folder, { recursive: true, force: true })
