import { z } from 'zod'

const Order = z.object({ id: z.uuid(), lines: z.array(z.object({ name: z.string(), count: z.number().int() })) })
const order = { id: '0198f3c4-8a1e-7c3a-9d2b-3f5e6a7b8c9d', lines: [{ name: 'loom', count: 2 }] }

export default () => () => Order.parse(order).lines.length + Number(Order.safeParse({}).success)
