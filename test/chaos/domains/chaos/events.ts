import { z } from 'zod'
import type { EventContracts } from '#heddle'

/**
 * How the first subscriber of a count behaves. `straight`: handles it. `stumbles`: throws at the first attempt. `hangs`: never settles at the first
 * attempt. `fails`: throws always.
 */
export const course = z.enum(['straight', 'stumbles', 'hangs', 'fails'])

const contracts = {
  'chaos.counted': z.object({ number: z.number(), course }),
  'chaos.noted': z.object({ number: z.number() }),
  'chaos.poisoned': z.object({ number: z.number() }),
} satisfies EventContracts

export default contracts

export type Counted = z.infer<(typeof contracts)['chaos.counted']>
export type Noted = z.infer<(typeof contracts)['chaos.noted']>
