/** Exit codes: as in sysexits.h, or 128 plus the number of a signal. */
export const exitCodes = {
  /** The answer of `check` or `ready` is no. */
  notOk: 1,
  usage: 64,
  /** The input is not what it should be, as a whole or in some of its lines. */
  data: 65,
  noInput: 66,
  unavailable: 69,
  cannotCreate: 73,
  inputOutput: 74,
  config: 78,
  hungUp: 129,
  interrupted: 130,
  brokenPipe: 141,
  terminated: 143,
} as const

/** A command could not do its work. The message is for the operator; an empty one is not shown. */
export class CommandFailed extends Error {
  readonly exitCode: number

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CommandFailed'
    this.exitCode = exitCode
  }
}
