/** Judges from outside which events are of a tree that was taken back: cancels with all that an event has caused, and replays after them. */
import { ancestorsBelow, chainOf, isOfTree, type Lineage } from '../../../src/core/causality/ancestors.ts'

interface Asked {
  readonly askedAt: number
  answeredAt: number
}

interface Node extends Lineage {
  readonly id: string
}

/** Ids as publishers make them: only such ones can be cancelled with what they cause. */
export const treeId = (number: number): string => `evt_${number.toString(16).padStart(32, '0')}`

export class TreeJudge {
  readonly #events = new Map<string, Node>()
  /** The last cancel of each, and the last replay. */
  readonly #cancels = new Map<string, Asked>()
  readonly #replays = new Map<string, Asked>()
  #moment = 0

  /** @param parent the event whose handler publishes it */
  published(id: string, parent: Node | null): Lineage {
    const lineage =
      parent === null ? { parentId: null, ancestors: '' } : { parentId: parent.id, ancestors: ancestorsBelow(parent) }
    this.#events.set(id, { id, ...lineage })
    return lineage
  }

  /** The event, and those above it. */
  chain(id: string): string[] {
    return chainOf(this.#events.get(id)!)
  }

  cancelling(id: string): { readonly cancel: Asked; readonly ids: readonly string[] } {
    const cancel = this.#begins(this.#cancels, id)
    return { cancel, ids: this.below(id) }
  }

  below(tree: string): string[] {
    return [...this.#events.values()].flatMap((event) => (isOfTree(tree, event) ? [event.id] : []))
  }

  replaying(id: string): Asked {
    return this.#begins(this.#replays, id)
  }

  answered(asked: Asked): void {
    asked.answeredAt = ++this.#moment
  }

  #begins(all: Map<string, Asked>, id: string): Asked {
    const asked = { askedAt: ++this.#moment, answeredAt: Number.POSITIVE_INFINITY }
    all.set(id, asked)
    return asked
  }

  /** What becomes of an event that is published now. */
  fateOf(id: string): 'is delivered' | 'never begins' | 'unknown' {
    let askedAt = 0
    let answeredAt = 0
    for (const each of this.chain(id)) {
      const replay = this.#replays.get(each)
      if (replay !== undefined) {
        askedAt = Math.max(askedAt, replay.askedAt)
        answeredAt = Math.max(answeredAt, replay.answeredAt)
      }
      const cancel = this.#cancels.get(each)
      if (cancel === undefined) continue
      if (answeredAt < cancel.askedAt && cancel.answeredAt < Number.POSITIVE_INFINITY) return 'never begins'
      // Others of the event may still be at work from before its replay.
      if (askedAt < cancel.answeredAt || answeredAt === Number.POSITIVE_INFINITY) return 'unknown'
    }
    return 'is delivered'
  }
}
