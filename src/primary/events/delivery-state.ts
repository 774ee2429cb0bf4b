// The states of a delivery in the hub.

/**
 * What a delivery waits for.
 * ```
 *                                   beginning
 *                                     ▲ │
 *   new ──► later ◄─► behind ──┬──► ready ◄───┬─► sent ──┬──► ended
 *             ▲                └──► suspect ◄─┘          ├──► dead ──► ended
 *             └──────────────────────────────────────────┘
 * ```
 * `later`: its time. `behind`: an earlier delivery of its key, or the dead letter that blocks the key. `ready`: a thread with room. `beginning`: the
 * commit that begins a row that is alone while it waits; from there it may become a `suspect`, too. `suspect`: the
 * quarantine lane. `sent`: the answer of its thread. `dead`: the commit of its dead letter. Steps may be skipped. A delivery that has failed waits
 * `later`; one whose thread died, or whose tool is away, is `ready` or `suspect` again. One that waits is `ended`
 * if it returns to its store, the process stops, or, at its turn, its subscriber has left or it has expired (`ready` alone). One that is `sent` goes on.
 * `behind` is also reached from `behind`: a dead letter blocks the key meanwhile.
 */
export type DeliveryState = 'new' | 'later' | 'behind' | 'ready' | 'beginning' | 'suspect' | 'sent' | 'dead' | 'ended'

/** Moves a delivery on. @throws Error where its state does not allow it */
export function become(delivery: { state: DeliveryState }, next: DeliveryState): void {
  if (!mayFollow(delivery.state, next)) throw new Error(`A delivery that is ${delivery.state} cannot become ${next}`)
  delivery.state = next
}

function mayFollow(state: DeliveryState, next: DeliveryState): boolean {
  switch (next) {
    case 'sent':
      return state === 'ready' || state === 'suspect'
    case 'ended':
      return state !== 'ended'
    case 'behind':
      return state === 'new' || state === 'later' || state === 'behind'
    case 'new':
      return false
    case 'beginning':
      return state === 'ready' || state === 'new' || state === 'later' || state === 'behind'
    default:
      return state === 'beginning' || state === 'sent' || state === 'new' || state === 'later' || state === 'behind'
  }
}
