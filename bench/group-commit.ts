/**
 * What the group commit gains: durable creates over 64 connections, with one commit for a whole batch and with one
 * commit (SQLite) or one INSERT (PostgreSQL) for each request. Both services run in turn, in slices, so that a noisy
 * machine disturbs both alike. The CPU time is that of the service, and of the PostgreSQL server where there is one.
 *
 *   npx node bench/group-commit.ts sqlite
 *   npx node bench/group-commit.ts postgres
 */
import { fork } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newCluster, type PostgresServer, query, startServer } from '../test/support/postgres.ts'
import { createPlants } from './load.ts'

const connections = 64
const slices = 12
const sliceMs = 500
const token = 'a-token-for-the-benchmark'
const microsecondsPerTick = 10_000

interface Subject {
  readonly title: string
  readonly measure: () => Promise<{ cpuMicroseconds: number; creates: number }>
  readonly stop: () => void
}

const program = fileURLToPath(new URL('subject.ts', import.meta.url))

async function startSubject(
  title: string,
  mode: string,
  url: string,
  server?: PostgresServer,
): Promise<Subject> {
  const child = fork(program, [url, mode, token], { stdio: 'inherit' })
  const ask = <Reply>(question: string) =>
    new Promise<Reply>((resolve) => {
      child.once('message', (reply) => resolve(reply as Reply))
      child.send(question)
    })
  const { port } = await ask<{ port: number }>('port')
  const readCpu = async () =>
    (await ask<number>('cpu')) + (server ? cpuOf(Number(server.process.pid)) : 0)
  let nextId = 0

  async function measure() {
    const cpuBefore = await readCpu()
    const firstId = nextId
    nextId = await createPlants(port, token, nextId, { connections, forMs: sliceMs })
    return { cpuMicroseconds: (await readCpu()) - cpuBefore, creates: nextId - firstId }
  }

  return { title, measure, stop: () => child.kill() }
}

/** The CPU time of a process and of its children, from /proc. */
function cpuOf(pid: number): number {
  let ticks = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      if (Number(name) === pid || Number(fields[1]) === pid)
        ticks += Number(fields[11]) + Number(fields[12])
    } catch {
      // It has just ended.
    }
  }
  return ticks * microsecondsPerTick
}

async function startSqlite(folder: string): Promise<Subject[]> {
  return [
    await startSubject('group commit', 'grouped', `sqlite:${join(folder, 'grouped.db')}`),
    await startSubject('a commit per request', 'single', `sqlite:${join(folder, 'single.db')}`),
  ]
}

async function startPostgres(server: PostgresServer): Promise<Subject[]> {
  for (const name of ['grouped', 'single'])
    await query(server.toUrl('postgres'), `CREATE DATABASE ${name}`)
  return [
    await startSubject('group commit', 'grouped', server.toUrl('grouped'), server),
    await startSubject('an INSERT per request', 'single', server.toUrl('single'), server),
  ]
}

const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
const isPostgres = process.argv[2] === 'postgres'
const server = isPostgres ? await startServer(await newCluster()) : undefined
const subjects = server ? await startPostgres(server) : await startSqlite(folder)
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
const ratio = (values: number[][]) => (median(values[0]) / median(values[1])).toFixed(2)
console.log(
  `ratio                  ${ratio(rates)} of the throughput, ${ratio(costs)} of the CPU time`,
)
for (const subject of subjects) subject.stop()
await server?.stop()
rmSync(folder, { recursive: true, force: true })
