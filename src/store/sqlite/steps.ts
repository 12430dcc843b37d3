import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Answer, Row, Statement, Steps } from '../steps.ts'

interface Prepared {
  readonly statement: StatementSync
  readonly hasRows: boolean
}

/** Builds a function that runs the steps of an operation, without a pause between them. */
export function buildStepRunner(db: DatabaseSync) {
  const prepared = new Map<string, Prepared>()

  function prepare(text: string): Prepared {
    let found = prepared.get(text)
    if (found === undefined) {
      const ours = text.replaceAll('plant_store.', '').replaceAll(/\$(?=\d)/g, '?')
      const statement = db.prepare(ours)
      found = { statement, hasRows: statement.columns().length > 0 }
      prepared.set(text, found)
    }
    return found
  }

  function answer({ text, values }: Statement): Answer {
    const { statement, hasRows } = prepare(text)
    if (!hasRows) return Object.assign([], { count: Number(statement.run(...values).changes) })
    const rows = statement.all(...values) as unknown as Row[]
    return Object.assign(rows, { count: rows.length })
  }

  return <Outcome>(steps: Steps<Outcome>): Outcome => {
    let step = steps.next()
    while (!step.done) step = steps.next(answer(step.value))
    return step.value
  }
}
