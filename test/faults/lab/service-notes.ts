import { subscribe, tracingChannel } from 'node:diagnostics_channel'
import { openSync, writeSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { clockMs, numberHeader, type ServiceNote } from './notes.ts'

// Loaded into a service before it starts: notes in a file which connections it accepts and which
// requests it begins. Each note is written at once, so that it survives any end of the process.

const file = openSync(process.env.NOTES_FILE ?? '', 'a')
const note = (line: ServiceNote) => writeSync(file, `${JSON.stringify(line)}\n`)

tracingChannel('net.server.listen').subscribe({
  start() {},
  end() {},
  asyncStart() {},
  asyncEnd: () => note({ what: 'listening' }),
  error() {},
})
subscribe('net.server.socket', (message) => {
  const { socket } = message as { socket: Socket }
  note({ what: 'accepted', port: socket.remotePort ?? 0, at: clockMs() })
})
subscribe('http.server.request.start', (message) => {
  const { request } = message as { request: IncomingMessage }
  const number = request.headers[numberHeader]
  if (number !== undefined) note({ what: 'begun', number: Number(number) })
})
