// Names that are made of others.

export const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1)

/** `create-order`, `order_items`, `order.placed` → `CreateOrder`, `OrderItems`, `OrderPlaced` */
export const pascal = (text: string): string =>
  text
    .split(/[^A-Za-z0-9]+/)
    .map(capital)
    .join('')

/** Gives each name once: where it is taken, with a number behind it. */
export class UniqueNames {
  readonly #taken: Set<string>

  constructor(taken: Iterable<string> = []) {
    this.#taken = new Set(taken)
  }

  /** @param gap before the number */
  of(wanted: string, gap = ''): string {
    let name = wanted
    for (let n = 2; this.#taken.has(name); n++) name = `${wanted}${gap}${n}`
    this.#taken.add(name)
    return name
  }
}
