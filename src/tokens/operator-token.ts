import { closeSync, constants, openSync, readSync } from 'node:fs'
import { explainErrno } from '../errno.ts'

/** The token that the operator has chosen, or what is wrong with it. */
export type OperatorToken =
  | { readonly token: string | undefined; readonly mistake?: undefined }
  | { readonly token?: undefined; readonly mistake: string }

const minLength = 20
/** A longer token would not fit into the headers of a request. */
const maxLength = 8 * 1024
const expected = `${minLength} or more visible ASCII characters`

/** Takes the token from PLANT_STORE_TOKEN, or from the file that PLANT_STORE_TOKEN_FILE names. */
export function readOperatorToken(
  given: string | undefined,
  path: string | undefined,
): OperatorToken {
  if (path === undefined) {
    if (given === undefined || isWellFormed(given)) return { token: given }
    return { mistake: `PLANT_STORE_TOKEN must be ${expected}.` }
  }
  if (given !== undefined) {
    return { mistake: 'Set PLANT_STORE_TOKEN or PLANT_STORE_TOKEN_FILE, not both.' }
  }
  try {
    const token = readTokenFile(path).replace(/\r?\n$/, '')
    if (isWellFormed(token)) return { token }
    return { mistake: `PLANT_STORE_TOKEN_FILE must hold ${expected}.` }
  } catch (error) {
    return { mistake: `PLANT_STORE_TOKEN_FILE: cannot read ${path}: ${explainErrno(error)}.` }
  }
}

function isWellFormed(text: string): boolean {
  return text.length >= minLength && text.length <= maxLength && /^[!-~]+$/.test(text)
}

/** The beginning of a file with a token: enough to see whether it is too long. */
function readTokenFile(path: string): string {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const start = Buffer.alloc(maxLength + 2)
    return start.toString('latin1', 0, readSync(file, start))
  } finally {
    closeSync(file)
  }
}
