interface Starter {
  /** The end of the parent is a reason to end. */
  followsParent: boolean
  /** Called at most twice, with what is gone. */
  onGone: (what: string) => void
}

/** Calls back when the parent of this process has ended, or its terminal is closed. */
export declare function endWithStarter(starter: Starter): void
