/** Exit codes of sysexits.h, and those of a process that a signal ended. */
export const exitCodes = {
  usage: 64,
  /** The data are not what they should be: some lines were not taken, or the file as a whole. */
  data: 65,
  noInput: 66,
  cannotCreate: 73,
  inputOutput: 74,
  noPermission: 77,
  config: 78,
  interrupted: 130,
  brokenPipe: 141,
  terminated: 143,
} as const

/** A command did not do what it was asked for. The message is for the operator. */
export class CommandFailed extends Error {
  readonly exitCode: number

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'CommandFailed'
    this.exitCode = exitCode
  }
}

/** Why a file could not be used, in a few words. */
export function explainFile(error: unknown): string {
  const { code = '', message = String(error) } = error as NodeJS.ErrnoException
  return reasons[code] ?? message
}

const reasons: Record<string, string> = {
  ENOENT: 'there is no such file or folder',
  EACCES: 'no permission',
  EPERM: 'no permission',
  EISDIR: 'it is a folder',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EROFS: 'the file system can only be read',
  EEXIST: 'it exists already, and was not touched',
}
