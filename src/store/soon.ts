/**
 * What will be known soon, to be waited for like a promise. One of ours calls back in the very moment in which it is known:
 * a promise would take a turn of its own for each step, and a create has so many of them that they would be a tenth of it.
 */
export interface Soon<Value> {
  then<Next = Value, Other = never>(
    onValue?: ((value: Value) => Next | PromiseLike<Next>) | null,
    onReason?: ((reason: unknown) => Other | PromiseLike<Other>) | null,
  ): Soon<Next | Other>
  catch<Other>(onReason: (reason: unknown) => Other | PromiseLike<Other>): Soon<Value | Other>
}

type State = 'open' | 'fulfilled' | 'rejected'

/** A `Soon` in the hands of the one who will know. It is settled once; what is said later is not heard. */
export class Deferred<Value> implements Soon<Value> {
  #state: State = 'open'
  /** The value or the reason. */
  #outcome: unknown
  #onSettled: (() => void) | undefined

  static fulfilled<Value>(value: Value): Deferred<Value> {
    const deferred = new Deferred<Value>()
    deferred.fulfill(value)
    return deferred
  }

  static rejected(reason: unknown): Deferred<never> {
    const deferred = new Deferred<never>()
    deferred.reject(reason)
    return deferred
  }

  fulfill(value: Value): void {
    this.#settle('fulfilled', value)
  }

  reject(reason: unknown): void {
    this.#settle('rejected', reason)
  }

  #settle(state: State, outcome: unknown): void {
    if (this.#state !== 'open') return
    this.#state = state
    this.#outcome = outcome
    this.#onSettled?.()
    this.#onSettled = undefined
  }

  // biome-ignore lint/suspicious/noThenProperty: it is there to be awaited
  then<Next = Value, Other = never>(
    onValue?: ((value: Value) => Next | PromiseLike<Next>) | null,
    onReason?: ((reason: unknown) => Other | PromiseLike<Other>) | null,
  ): Deferred<Next | Other> {
    const next = new Deferred<Next | Other>()
    const pass = () => {
      const take = this.#state === 'fulfilled' ? onValue : onReason
      if (take) next.#follow(take as (outcome: unknown) => Next, this.#outcome)
      else next.#settle(this.#state, this.#outcome)
    }
    if (this.#state === 'open') this.#call(pass)
    else pass()
    return next
  }

  catch<Other>(onReason: (reason: unknown) => Other | PromiseLike<Other>): Deferred<Value | Other> {
    return this.then(undefined, onReason)
  }

  #call(listener: () => void): void {
    const before = this.#onSettled
    this.#onSettled = before
      ? () => {
          before()
          listener()
        }
      : listener
  }

  /** Becomes what a step makes of the outcome before it, at once or when that is known. */
  #follow(take: (outcome: unknown) => Value | PromiseLike<Value>, outcome: unknown): void {
    try {
      const value = take(outcome)
      if (isThenable(value)) {
        value.then(
          (known) => this.fulfill(known),
          (reason) => this.reject(reason),
        )
      } else this.fulfill(value)
    } catch (error) {
      this.reject(error)
    }
  }
}

function isThenable<Value>(value: Value | PromiseLike<Value>): value is PromiseLike<Value> {
  return typeof value === 'object' && value !== null && 'then' in value
}
