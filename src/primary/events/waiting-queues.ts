import type { Consumer, Delivery, Line } from './consumer.ts'

/** The lines in which something waits for room. */
export class WaitingLines {
  readonly #lines = new Set<Line>()

  get isEmpty(): boolean {
    return this.#lines.size === 0
  }

  push(delivery: Delivery): void {
    delivery.line.waiting.push(delivery)
    this.#lines.add(delivery.line)
  }

  /** Before those that wait already. */
  unshift(delivery: Delivery): void {
    delivery.line.waiting.unshift(delivery)
    this.#lines.add(delivery.line)
  }

  /** Takes out all that waits for one consumer. */
  takeOf(consumer: Consumer): Delivery[] {
    const taken: Delivery[] = []
    for (const line of this.#lines) {
      if (line.consumer !== consumer) continue
      this.#lines.delete(line)
      for (let next = line.waiting.shift(); next !== undefined; next = line.waiting.shift()) taken.push(next)
    }
    return taken
  }

  /** Offers what waits, line by line, each from its head on. @param dispatch false when there is no room for it */
  pump(dispatch: (delivery: Delivery) => boolean): void {
    for (const line of this.#lines) {
      const { waiting } = line
      while (waiting.size > 0 && dispatch(waiting.peek()!)) waiting.shift()
      if (waiting.size === 0) this.#lines.delete(line)
    }
  }
}
