/** The known facts of a failure. */
interface Known {
  readonly status?: number | undefined
  readonly error?: number | undefined
  readonly requestId?: string | undefined
  readonly cause?: unknown
}

/**
 * A call failed: the service refused it, the connection was lost on every attempt, or something
 * other than a Plant Store answered. Members that are not known are undefined.
 */
export class PlantStoreError extends Error {
  /** The HTTP status, unless there was no answer. */
  readonly status: number | undefined
  /** The number of the failure, such as 40900: the one to switch on. */
  readonly error: number | undefined
  /** The id under which the log of the service mentions the request. */
  readonly requestId: string | undefined

  constructor(message: string, known: Known = {}) {
    super(message, known.cause === undefined ? undefined : { cause: known.cause })
    this.name = 'PlantStoreError'
    this.status = known.status
    this.error = known.error
    this.requestId = known.requestId
  }
}

/**
 * The position in the journal is older than what the service keeps, or belongs to another store
 * (41000). Call `position`, list all plants, then follow from that position.
 */
export class PositionGoneError extends PlantStoreError {
  override name = 'PositionGoneError'
}
