// The events above an event, as far as a cancel of one of them reaches it.

/** How far down a cancel reaches. */
export const GENERATIONS_MAX = 16
/** Length of an id in a list, with the blank behind it. */
export const ANCESTOR_STEP = 37

/** An event's parent, and the ids above that, nearest first and with a blank between two; empty: none. */
export interface Lineage {
  readonly parentId: string | null
  readonly ancestors: string
}

const OWN_ID = /^evt_[0-9a-f]{32}$/
const LINEAGE = /^evt_[0-9a-f]{32}(?: evt_[0-9a-f]{32})+$/
const ANCESTORS_MAX_LENGTH = (GENERATIONS_MAX - 1) * ANCESTOR_STEP - 1

/** `ancestors` of what the handlers of an event publish. An id that no publisher here has made cannot be cancelled, and is left out. */
export function ancestorsBelow({ parentId, ancestors }: Lineage): string {
  if (parentId === null || !OWN_ID.test(parentId)) return ancestors
  return ancestors === '' ? parentId : `${parentId} ${ancestors}`.slice(0, ANCESTORS_MAX_LENGTH)
}

/** True for an event, and for what it has caused. */
export const isOfTree = (id: string, event: Lineage & { readonly id: string }): boolean =>
  event.id === id || event.parentId === id || (event.ancestors !== '' && event.ancestors.includes(id))

/** Ids of the event and of those above it, nearest first. */
export function chainOf({ id, parentId, ancestors }: Lineage & { readonly id: string }): string[] {
  const chain = parentId === null ? [id] : [id, parentId]
  return ancestors === '' ? chain : [...chain, ...ancestors.split(' ')]
}

/** Both as one text. */
export const lineageText = ({ parentId, ancestors }: Lineage): string | null =>
  parentId === null || ancestors === '' || !OWN_ID.test(parentId) ? parentId : `${parentId} ${ancestors}`

/** The reading side of `lineageText`. */
export function lineageOf(text: string | null): Lineage {
  if (text === null || text.length < 2 * ANCESTOR_STEP - 1 || !LINEAGE.test(text))
    return { parentId: text, ancestors: '' }
  return { parentId: text.slice(0, ANCESTOR_STEP - 1), ancestors: text.slice(ANCESTOR_STEP) }
}

/** Those that came from outside, checked. */
export const ancestorsIn = (text: unknown): string =>
  typeof text === 'string' && text.length <= ANCESTORS_MAX_LENGTH && (OWN_ID.test(text) || LINEAGE.test(text))
    ? text
    : ''
