import type { State } from '../../../src/contracts/state.ts'

export interface StateUnderTest {
  state: State
  /** The same store, as another thread or replica sees it. */
  other: State
}
