import type { Steps } from '../steps.ts'
import type { Sql } from './sql.ts'

/** Runs the steps of an operation. */
export async function runSteps<Outcome>(sql: Sql, steps: Steps<Outcome>): Promise<Outcome> {
  let step = steps.next()
  while (!step.done) {
    const { text, values } = step.value
    step = steps.next(await sql.run(text, values))
  }
  return step.value
}
