/**
 * Loaded into a service before it starts: each SIGUSR2 sets the clock of the process back by an
 * hour, as an operator or a time server may do. Monotonic clocks such as `performance.now` go on.
 */
const hourMs = 60 * 60 * 1_000
const RealDate = Date
let shiftMs = 0

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
