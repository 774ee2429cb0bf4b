import type { EventContracts, PayloadsOf } from 'heddle'
import { z } from 'zod'

const contracts = {
  'order.placed': z.object({ id: z.string(), customer_id: z.string(), total_cents: z.number() }),
  'order.paid': z.object({ id: z.string(), customer_id: z.string(), total_cents: z.number() }),
} satisfies EventContracts

export default contracts

declare module 'heddle' {
  interface Events extends PayloadsOf<typeof contracts> {}
}
