import { PlantStoreError } from '../../../client/errors.ts'

/** The sentence to show for a failure: the service's own, where it answered. */
export function toSentence(error: unknown): string {
  if (!(error instanceof PlantStoreError)) throw error
  if (error.error !== undefined) return error.message
  return 'The service does not answer. Nothing that you typed is lost: try again in a moment.'
}

/** Whether the service refused the token. */
export function isTokenRefused(error: unknown): boolean {
  return error instanceof PlantStoreError && error.status === 401
}

/** Whether the service refused with this number. */
export function isNumber(error: unknown, number: number): boolean {
  return error instanceof PlantStoreError && error.error === number
}
