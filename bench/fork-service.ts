import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** A service in a child process. */
export interface ForkedService {
  readonly port: number
  /** Its CPU time so far in microseconds, or its resident memory in megabytes. */
  read(figure: 'cpuUs' | 'rssMb'): Promise<number>
  kill(signal?: 'SIGKILL'): void
}

export async function forkService(
  url: string,
  execArgv = process.execArgv,
  settings: Readonly<Record<string, string>> = {},
): Promise<ForkedService> {
  const args = [url, JSON.stringify(settings)]
  const child = fork(fileURLToPath(new URL('service.ts', import.meta.url)), args, { execArgv })
  const ask = (question: string) =>
    new Promise<number>((resolve) => {
      child.once('message', (reply) => resolve(Number(reply)))
      child.send(question)
    })
  return { port: await ask('port'), read: ask, kill: (signal) => child.kill(signal) }
}
