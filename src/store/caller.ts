/** Waits for an answer, until it is destroyed: then a read for it is not worth its cost. */
export interface Caller {
  readonly destroyed: boolean
}
