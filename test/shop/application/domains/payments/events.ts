import type { EventContracts, PayloadsOf } from 'heddle'
import { z } from 'zod'

const contracts = {
  'payment.received': z.object({ payment_id: z.string(), order_id: z.string() }),
} satisfies EventContracts

export default contracts

declare module 'heddle' {
  interface Events extends PayloadsOf<typeof contracts> {}
}
