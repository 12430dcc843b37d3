/**
 * Loaded into a service before it starts: each SIGUSR2 sets the clock of the process back by an
 * hour, as an operator or a time server may do. The monotonic clock (`performance.now`) continues.
 * With `LONG_GRACE`, a shutdown gives a busy machine more time to notice that it has begun.
 * With `SHORT_LEASES`, another process takes over webhooks soon. On a busy machine, a lease may end
 * by itself then.
 */
import { defaultTimeouts } from '../../../src/contract/limits.ts'
import { defaultSettings } from '../../../src/webhooks/sender.ts'

const hourMs = 60 * 60 * 1_000
const RealDate = Date
let shiftMs = 0

if (process.env.LONG_GRACE) Object.assign(defaultTimeouts, { idleGraceMs: 4_000 })
if (process.env.SHORT_LEASES) {
  Object.assign(defaultSettings, { leaseMs: 600, renewMs: 200, pollMs: 50 })
}
Object.assign(defaultSettings, { retryDelaysMs: Array(10).fill(100) })

process.on('SIGUSR2', () => {
  shiftMs -= hourMs
  process.stderr.write(`the clock says ${new Date().toISOString()}\n`)
})

const now = () => RealDate.now() + shiftMs

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args: unknown[], self) =>
    Reflect.construct(target, args.length === 0 ? [now()] : args, self),
  apply: () => new RealDate(now()).toString(),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
})
