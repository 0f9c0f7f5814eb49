// An API as people write it with Express, with a document of its own: every route gives back what it received.
import express from 'express';

const app = express();
app.set('query parser', 'extended');
app.use(express.json({ type: ['application/json', 'application/merge-patch+json'] }));
app.use(express.urlencoded({ extended: true }));
app.use(express.text({ type: ['text/plain', 'application/xml'] }));
app.use(express.raw({ type: 'application/octet-stream' }));

const seen = (request, response) =>
  response.json({
    method: request.method,
    path: request.path,
    params: request.params,
    query: request.query,
    type: request.get('content-type') ?? null,
    body: Buffer.isBuffer(request.body) ? request.body.toString('hex') : (request.body ?? null),
    header: request.get('x-request-id') ?? null,
  });

const text = { schema: { type: 'string' } };
const document = {
  openapi: '3.0.3',
  info: { title: 'Orders', version: '1.0' },
  servers: [{ url: '/api/v1' }],
  paths: {
    '/orders/{id}': {
      get: {
        operationId: 'getOrder',
        parameters: [
          { name: 'id', in: 'path', required: true, ...text },
          { name: 'filter', in: 'query', style: 'deepObject', schema: { type: 'object' } },
          { name: 'ids', in: 'query', explode: false, schema: { type: 'array', items: { type: 'integer' } } },
          { name: 'X-Request-Id', in: 'header', ...text },
        ],
      },
      patch: {
        operationId: 'patchOrder',
        parameters: [{ name: 'id', in: 'path', required: true, ...text }],
        requestBody: { content: { 'application/merge-patch+json': { schema: { type: 'object' } } } },
      },
    },
    '/form': {
      post: {
        operationId: 'sendForm',
        requestBody: {
          content: {
            'application/x-www-form-urlencoded': {
              schema: { type: 'object', properties: { name: { type: 'string' }, tags: { type: 'array', items: { type: 'string' } } } },
            },
          },
        },
      },
    },
    '/text': { post: { operationId: 'sendText', requestBody: { content: { 'text/plain': text } } } },
    '/xml': {
      post: {
        operationId: 'sendXml',
        requestBody: {
          content: {
            'application/xml': {
              schema: {
                type: 'object',
                xml: { name: 'order' },
                properties: { id: { type: 'integer', xml: { attribute: true } }, note: { type: 'string' } },
              },
            },
          },
        },
      },
    },
    '/bytes': {
      put: { operationId: 'sendBytes', requestBody: { content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } } } },
    },
  },
};

app.get('/openapi.json', (_, response) => response.json(document));
const api = express.Router();
api.all('/orders/:id', seen);
for (const path of ['/form', '/text', '/xml', '/bytes']) api.all(path, seen);
app.use('/api/v1', api);
const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
