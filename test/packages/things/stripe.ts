import Stripe from 'stripe'

export default (get: (name: string) => string) => {
  const { hostname, port } = new URL(get('TRIAL_HTTP'))
  const stripe = new Stripe('sk_test_1', { host: hostname, port, protocol: 'http' })
  return async () => (await stripe.customers.create({ email: 'ada@example.com' })).id
}
