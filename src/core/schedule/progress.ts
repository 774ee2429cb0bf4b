// Says what a start or a stop waits for, where it takes long.
import { steadyMs } from './clock.ts'

/** How often it is said, milliseconds. */
const SAY_EVERY_MS = 10_000

/** A start or a stop: while it lasts, one line each ten seconds says what it waits for. */
export class Progress {
  /** Tells what is waited for now. */
  step: string | (() => string) = 'its parts'
  readonly #startedMs = steadyMs()
  readonly #timer: NodeJS.Timeout

  /** @param what begins the line: `Starting`, `Stopping` @param waits leads to the step */
  constructor(what: string, say: (message: string) => void, { waits = ': waits for ', everyMs = SAY_EVERY_MS } = {}) {
    this.#timer = setInterval(() => {
      const step = typeof this.step === 'string' ? this.step : this.step()
      say(`${what} for ${Math.round((steadyMs() - this.#startedMs) / 1000)} s${waits}${step}`)
    }, everyMs).unref()
  }

  end(): void {
    clearInterval(this.#timer)
  }
}
