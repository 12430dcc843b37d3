import { type ErrorNumber, Failure } from '../../contract/errors.ts'

/** An error as plain data. Sent between threads, an error loses its class and its members. */
export interface ErrorParts {
  readonly message: string
  readonly stack: string | undefined
  readonly members: Readonly<Record<string, unknown>>
  readonly cause: ErrorParts | undefined
}

export function toErrorParts(error: unknown): ErrorParts {
  const { message, stack, cause } = error instanceof Error ? error : new Error(String(error))
  const members = { ...(error as object) }
  return { message, stack, members, cause: cause === undefined ? cause : toErrorParts(cause) }
}

/** Rebuilds the error: a `Failure` with its number, or a plain `Error`. */
export function toError({ message, stack, members, cause }: ErrorParts): Error {
  const options = cause && { cause: toError(cause) }
  const { number } = members as { number?: ErrorNumber }
  const error =
    number === undefined ? new Error(message, options) : new Failure(number, message, options)
  return Object.assign(error, members, { stack })
}
