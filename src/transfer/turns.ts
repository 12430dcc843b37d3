import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * Gives the event loop a turn after each piece. Reads of SQLite and writes to a file may never
 * wait: without a turn, requests would wait for the last piece, and a command would see no signal.
 */
export async function* inTurns<Piece>(pieces: AsyncIterable<Piece>): AsyncGenerator<Piece> {
  for await (const piece of pieces) {
    yield piece
    await nextTurn()
  }
}
