import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { newCluster, type PostgresServer, query, startServer } from '../test/support/postgres.ts'
import type { Load, LoadResult } from './generator.ts'

/** The two lengths of the benchmark. */
export type Form = 'short' | 'full'

/** The means of every measurement: processes, a folder, PostgreSQL and the load generator. */
export interface Lab {
  readonly form: Form
  readonly folder: string
  /** The program of PocketBase, if it takes part. */
  readonly pocketbase: string | undefined
  /** Shows the current step in one line, which the next step replaces. */
  progress(text: string): void
  /**
   * Starts a program, with Node.js unless it names another, and waits until it listens. It ends with
   * the benchmark.
   */
  serve(program: Program): Promise<Server>
  /** The PostgreSQL server of the benchmark, started on first use. */
  findPostgres(): Promise<PostgresServer>
  /** Starts another PostgreSQL server, which ends with the benchmark. */
  startPostgres(folder: string, env: Readonly<Record<string, string>>): Promise<PostgresServer>
  /** Creates an empty database on the benchmark's server and returns its URL. */
  newDatabase(name: string): Promise<string>
  drive(load: Load): Promise<LoadResult>
  /** Closes the connections that the load generator keeps to a port. */
  forget(port: number): Promise<void>
  close(): Promise<void>
}

export interface Program {
  readonly args: readonly string[]
  /** The Node.js that runs it, if not this one. */
  readonly program?: string
  /** The port it listens on, if it does not print it. */
  readonly port?: number
  readonly env?: Readonly<Record<string, string>>
}

export interface Server {
  readonly pid: number
  readonly port: number
  /** From the start of the process until it listened. */
  readonly startMs: number
  stop(): Promise<void>
}

const maxBuffersMb = 4_096
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export function openLab(form: Form, progress: Lab['progress'], pocketbase?: string): Lab {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-bench-'))
  const children = new Set<ChildProcess>()
  const generator = fork(fileURLToPath(new URL('generator.ts', import.meta.url)))
  let reply: PromiseWithResolvers<unknown> | undefined
  let postgres: Promise<PostgresServer> | undefined
  const servers = new Set<PostgresServer>()
  generator.on('message', (answer) => reply?.resolve(answer))
  // Its channel closes after its last message, which may tell why it ends.
  generator.on('disconnect', () => reply?.reject(new Error('The load generator has ended.')))
  process.on('exit', kill)
  for (const signal of signals) process.on(signal, end)

  async function serve(options: Program): Promise<Server> {
    const { args, port: knownPort, env = {}, program = process.execPath } = options
    const startedAt = performance.now()
    const child = spawn(program, args, {
      env: { PATH: process.env.PATH, PORT: '0', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    children.add(child)
    const port = await Promise.race([findPort(child), ...waitForPort(knownPort)])
    return { pid: Number(child.pid), port, startMs: performance.now() - startedAt, stop }

    async function stop(): Promise<void> {
      children.delete(child)
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  }

  function findPostgres(): Promise<PostgresServer> {
    postgres ??= (async () =>
      startPostgres(await newCluster(), {}, { shared_buffers: toBuffers() }))()
    return postgres
  }

  async function startPostgres(
    dataFolder: string,
    env: Readonly<Record<string, string>>,
    settings: Readonly<Record<string, string>> = {},
  ) {
    progress('starting PostgreSQL')
    const server = await startServer(dataFolder, settings, { env })
    servers.add(server)
    return server
  }

  async function newDatabase(name: string): Promise<string> {
    const server = await findPostgres()
    await query(server.toUrl('postgres'), `CREATE DATABASE ${name}`)
    return server.toUrl(name)
  }

  async function ask<Reply>(question: object): Promise<Reply> {
    reply = Promise.withResolvers()
    generator.send(question)
    const answer = await reply.promise
    if ('failure' in Object(answer)) throw new Error((answer as { failure: string }).failure)
    return answer as Reply
  }

  function end(signal: string): never {
    console.error(`Ended by ${signal}, before there was a result.`)
    process.exit(1)
  }

  function kill(): void {
    generator.kill()
    for (const child of children) child.kill('SIGKILL')
    for (const server of servers) server.kill()
    rmSync(folder, { recursive: true, force: true })
  }

  return {
    form,
    folder,
    pocketbase,
    progress,
    serve,
    findPostgres,
    startPostgres,
    newDatabase,
    drive: (load) => ask(load),
    forget: (port) => ask({ forget: port }),
    async close() {
      process.off('exit', kill)
      for (const signal of signals) process.off(signal, end)
      kill()
      for (const server of servers) await server.stop()
    },
  }
}

/** A quarter of the memory, as PostgreSQL's manual recommends, and at most what the data needs. */
function toBuffers(): string {
  return `${Math.min(maxBuffersMb, Math.floor(totalmem() / 4 / 2 ** 20))}MB`
}

/** Waits until a process prints its address. */
function findPort(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-10_000)
        const port = /http:\/\/127\.0\.0\.1:(\d+)/.exec(output)?.[1]
        if (port !== undefined) resolve(Number(port))
      })
    }
    child.on('exit', () => reject(new Error(`${child.spawnargs.join(' ')} ended: ${output}`)))
  })
}

/** Waits until a process listens on the port. */
function waitForPort(port: number | undefined): Promise<number>[] {
  if (port === undefined) return []
  return [
    (async () => {
      while (!(await isOpen(port))) await setTimeout(20)
      return port
    })(),
  ]
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true))
    socket.on('connect', () => socket.destroy())
    socket.on('error', () => resolve(false))
  })
}
