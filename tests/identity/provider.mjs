// An authorization server of npm (oidc-provider, certified by the OpenID Foundation) with the grants that a gateway needs.
// It reads its clients, with their public keys in PEM, as JSON from standard input, and prints its address. Whoever comes with a browser is
// alice, and agrees to everything.
import { createServer } from 'node:http';
import { Provider, errors } from 'oidc-provider';
import { createRemoteJWKSet, exportJWK, importSPKI, jwtVerify } from 'jose';

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ON_BEHALF_OF = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const API = 'https://api.example';
const GATEWAY = 'https://gateway.example';

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const { clients } = JSON.parse(Buffer.concat(chunks).toString());
for (const client of clients) {
  client.redirect_uris ??= [];
  client.response_types ??= [];
  if (!client.public_key) continue;
  const { public_key: pem, ...rest } = client;
  const key = await importSPKI(pem, client.token_endpoint_auth_signing_alg, { extractable: true });
  Object.assign(client, rest, { jwks: { keys: [{ ...(await exportJWK(key)), kid: 'key-1', use: 'sig' }] } });
  delete client.public_key;
}

const server = createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

const resource = (audience) => ({ scope: 'read write', audience, accessTokenTTL: 300, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } } });
const provider = new Provider(issuer, {
  clients,
  clientAuthMethods: ['client_secret_basic', 'client_secret_post', 'private_key_jwt', 'none'],
  enabledJWA: { clientAuthSigningAlgValues: ['RS256', 'PS256', 'ES256', 'EdDSA'] },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => API,
      useGrantedResource: () => true,
      getResourceServerInfo: (ctx, indicator) => {
        if (![API, GATEWAY].includes(indicator)) throw new errors.InvalidTarget();
        return resource(indicator);
      },
    },
  },
  interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  rotateRefreshToken: true,
  findAccount: (ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
  ttl: { AccessToken: 300, ClientCredentials: 300 },
});

async function issue(ctx, sub, indicator, scope) {
  const { client } = ctx.oidc;

  const grant = new provider.Grant({ accountId: sub, clientId: client.clientId });
  grant.addResourceScope(indicator, 'read write');
  await grant.save();
  const token = new provider.AccessToken({ accountId: sub, client, grantId: grant.jti, gty: 'exchange', scope });
  const info = resource(indicator);
  token.resourceServer = new provider.ResourceServer(indicator, info);
  return { value: await token.save(), expiresIn: token.expiration };
}

function scopeOf(params) {
  const asked = (params.scope ?? 'read').split(' ').filter(Boolean);
  if (asked.some((scope) => !['read', 'write'].includes(scope))) throw new errors.InvalidScope('scope is not known', params.scope);
  return asked.join(' ');
}

async function userOf(token) {
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
  try {
    return (await jwtVerify(token, keys, { issuer, audience: GATEWAY })).payload.sub;
  } catch (error) {
    throw new errors.InvalidGrant(`subject token: ${error.code}`);
  }
}

// A user's token for the gateway, without a browser.
provider.registerGrantType('sign-in', async (ctx) => {
  const { params } = ctx.oidc;
  const { value, expiresIn } = await issue(ctx, params.login, GATEWAY, 'read');
  ctx.body = { access_token: value, token_type: 'Bearer', expires_in: expiresIn };
}, ['login'], []);

provider.registerGrantType(EXCHANGE, async (ctx) => {
  const { params } = ctx.oidc;
  if (params.subject_token_type !== 'urn:ietf:params:oauth:token-type:access_token') throw new errors.InvalidRequest('subject_token_type');
  const target = params.audience ?? params.resource;
  if (target !== API) throw new errors.InvalidTarget();
  const { value, expiresIn } = await issue(ctx, await userOf(params.subject_token), API, scopeOf(params));
  ctx.body = { access_token: value, issued_token_type: params.subject_token_type, token_type: 'Bearer', expires_in: expiresIn, scope: scopeOf(params) };
}, ['subject_token', 'subject_token_type', 'audience', 'resource', 'scope'], []);

provider.registerGrantType(ON_BEHALF_OF, async (ctx) => {
  const { params } = ctx.oidc;
  if (params.requested_token_use !== 'on_behalf_of') throw new errors.InvalidRequest('requested_token_use');
  const { value, expiresIn } = await issue(ctx, await userOf(params.assertion), API, scopeOf(params));
  ctx.body = { access_token: value, token_type: 'Bearer', expires_in: expiresIn };
}, ['assertion', 'requested_token_use', 'scope'], []);

provider.on('server_error', (ctx, error) => console.error(error));
async function interact(request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    await provider.interactionFinished(request, response, { login: { accountId: 'alice' } });
    return;
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope = [], missingResourceScopes = {} } = prompt.details;
  grant.addOIDCScope(missingOIDCScope.join(' '));
  Object.entries(missingResourceScopes).forEach(([indicator, scopes]) => grant.addResourceScope(indicator, scopes.join(' ')));
  const consent = { grantId: await grant.save() };
  await provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

const answer = provider.callback();
server.on('request', (request, response) => {
  if (!request.url.startsWith('/interaction/')) return answer(request, response);
  return interact(request, response).catch((error) => {
    console.error(error);
    response.writeHead(500).end();
  });
});
console.log(issuer);
