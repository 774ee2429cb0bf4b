import { contentOf } from './encoding.ts'
import { ApiError, type Success, Unreachable } from './failures.ts'

/** A response below 400 whose body was not read yet. */
interface Exchange {
  response: Response
}

/**
 * A request that was sent. `await` gives its answer, and throws an `ApiError` or `Unreachable`. `result()` gives both, typed; `response()` the `Response`
 * with its body unread, for files and streamed answers.
 */
export class Call<Answer, Failure = ApiError | Unreachable> implements Promise<Answer> {
  readonly [Symbol.toStringTag] = 'Call'
  readonly #exchange: Promise<Exchange>
  #answer: Promise<Answer> | undefined

  constructor(exchange: Promise<Exchange>) {
    this.#exchange = exchange
  }

  // biome-ignore lint/suspicious/noThenProperty: it is awaited like a promise
  then<Kept = Answer, Caught = never>(
    onAnswer?: ((answer: Answer) => Kept | PromiseLike<Kept>) | null,
    // biome-ignore lint/suspicious/noExplicitAny: as a promise has it
    onFailure?: ((failure: any) => Caught | PromiseLike<Caught>) | null,
  ): Promise<Kept | Caught> {
    return this.#read().then(onAnswer, onFailure)
  }

  // biome-ignore lint/suspicious/noExplicitAny: as a promise has it
  catch<Caught = never>(onFailure?: ((failure: any) => Caught | PromiseLike<Caught>) | null): Promise<Answer | Caught> {
    return this.#read().catch(onFailure)
  }

  finally(onEnd?: (() => void) | null): Promise<Answer> {
    return this.#read().finally(onEnd)
  }

  /**
   * `{ ok: true, status, headers, answer }`, or the failure: `if (!result.ok && result.status === 409) result.code`. A status that the route does not declare
   * comes as an `ApiError`, too, and is not in the type. Rejects when the `signal` of the call was aborted.
   */
  async result(): Promise<Success<Answer> | Failure> {
    try {
      const [{ response }, answer] = await Promise.all([this.#exchange, this.#read()])
      return { ok: true, status: response.status, headers: response.headers, answer }
    } catch (error) {
      if (error instanceof ApiError || error instanceof Unreachable) return error as Failure
      throw error
    }
  }

  async response(): Promise<Response> {
    return (await this.#exchange).response
  }

  #read(): Promise<Answer> {
    this.#answer ??= this.#exchange.then(({ response }) => contentOf(response) as Promise<Answer>)
    return this.#answer
  }
}
