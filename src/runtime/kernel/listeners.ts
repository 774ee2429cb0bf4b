// Lists of listeners: added, removed, told, and one that throws is reported once.
import { messageOf } from '../../core/errors/description.ts'

const faulty = new WeakSet<object>()

/** The log message for a listener or sink that threw. @param kind for example `log sink` */
export const sinkFault = (kind: string, thrown: unknown): string =>
  `A ${kind} threw; it is not reported again: ${messageOf(thrown)}`

/** Gives a record to every listener. A listener that throws is reported once, and the others get the record all the same. */
export function tellAll<T>(
  listeners: readonly ((record: T) => void)[],
  record: T,
  onFault: (thrown: unknown) => void,
): void {
  // A copy: a listener that removes itself meanwhile must not make the next one miss the record.
  for (const listener of [...listeners]) {
    try {
      listener(record)
    } catch (thrown) {
      if (faulty.has(listener)) continue
      faulty.add(listener)
      onFault(thrown)
    }
  }
}

/** Adds an item to a list. @returns a function that removes it again, once */
export function added<T>(list: T[], item: T): () => void {
  list.push(item)
  return () => {
    const at = list.indexOf(item)
    if (at >= 0) list.splice(at, 1)
  }
}
