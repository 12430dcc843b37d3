import { closeSync, openSync, readSync } from 'node:fs'
import { explainErrno } from '../errno.ts'

const minLength = 20
/** A longer token would not fit into the headers of a request. */
const maxLength = 8 * 1024
const expected = `${minLength} or more visible ASCII characters`

/**
 * The token that the operator has chosen, in PLANT_STORE_TOKEN or in the file that
 * PLANT_STORE_TOKEN_FILE names, or what is wrong with it.
 */
export function readOperatorToken(given: string | undefined, path: string | undefined) {
  if (path === undefined) {
    if (given === undefined || isAcceptable(given)) return { token: given }
    return { mistake: `PLANT_STORE_TOKEN must be ${expected}.` }
  }
  if (given !== undefined) {
    return { mistake: 'Set PLANT_STORE_TOKEN or PLANT_STORE_TOKEN_FILE, not both.' }
  }
  try {
    const token = readStart(path).replace(/\r?\n$/, '')
    if (isAcceptable(token)) return { token }
    return { mistake: `PLANT_STORE_TOKEN_FILE must hold ${expected}.` }
  } catch (error) {
    return { mistake: `PLANT_STORE_TOKEN_FILE: cannot read ${path}: ${explainErrno(error)}.` }
  }
}

function isAcceptable(text: string): boolean {
  return text.length >= minLength && text.length <= maxLength && /^[!-~]+$/.test(text)
}

/** The beginning of a file: enough to see whether its token is too long. */
function readStart(path: string): string {
  const start = Buffer.alloc(maxLength + 2)
  const file = openSync(path, 'r')
  try {
    return start.toString('latin1', 0, readSync(file, start))
  } finally {
    closeSync(file)
  }
}
