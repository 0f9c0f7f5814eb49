"""Values that AutoRest's test server wants and its Swagger files do not say; taken from its routes."""

CLIENT = "9C4D50EE-2D56-4CD3-8152-34347DC9F2B0"
MULTIBYTE = "5ZWK6b2E5LiC54ub54uc76ex76Ss76ex76iM76ip"  # base64 of ten characters of several bytes
RESERVED = "begin!*'();:@ &=+$,/?#[]end"
# Kind of a header: scenarios and their values.
HEADERS = {
    "Integer": {"positive": 1, "negative": -2},
    "Long": {"positive": 105, "negative": -2},
    "Float": {"positive": 0.07, "negative": -3.0},
    "Double": {"positive": 7e120, "negative": -3.0},
    "Bool": {"true": True, "false": False},
    "String": {"valid": "The quick brown fox jumps over the lazy dog", "null": None, "empty": ""},
    "Enum": {"valid": "GREY", "null": None},
    "Date": {"valid": "2010-01-01", "min": "0001-01-01"},
    "Datetime": {"valid": "2010-01-01T12:34:56Z", "min": "0001-01-01T00:00:00Z"},
    "DatetimeRfc1123": {"valid": "Fri, 01 Jan 2010 12:34:56 GMT", "min": "Mon, 01 Jan 0001 00:00:00 GMT"},
    "Duration": {"valid": "P123DT22H14M12.011S"},
    "Byte": {"valid": MULTIBYTE},
}
# By operation, the arguments; by operation and "[]", those of several calls; by "*", what every operation of the name gets.
VALUES = {
    "*": {"subscriptionId": "1234-5678-9012-3456", "foo-client-request-id": CLIENT, "x-ms-client-request-id": CLIENT},
}
for kind, scenarios in HEADERS.items():
    VALUES[f"header_param{kind}[]"] = [
        {"scenario": name, **({} if value is None else {"value": value})} for name, value in scenarios.items()
    ]
    VALUES[f"header_response{kind}[]"] = [{"scenario": name} for name in scenarios]
VALUES["header_paramExistingKey"] = {"User-Agent": "overwrite"}
VALUES["header_paramProtectedKey"] = {"Content-Type": "text/html"}

FLAT = {
    "base_product_id": "123",
    "base_product_description": "product description",
    "details": {
        "max_product_display_name": "max name",
        "max_product_capacity": "Large",
        "max_product_image": {"@odata.value": "http://foo"},
    },
}
INHERITED = {
    **FLAT,
    "details": {**FLAT["details"], "max_product_image": {"@odata.value": "http://foo", "generic_value": "https://generic"}},
}
ONE = {"location": "West US", "tags": {"tag1": "value1", "tag2": "value3"}, "properties": {"p.name": "Product1", "type": "Flat"}}
TWO = {"location": "Building 44", "properties": {"p.name": "Product2", "type": "Flat"}}
DICTIONARY = {"Resource1": ONE, "Resource2": TWO}
PATHS = {"globalStringPath": "globalStringPath", "pathItemStringPath": "pathItemStringPath", "localStringPath": "localStringPath"}
QUERIES = {"globalStringQuery": "globalStringQuery", "pathItemStringQuery": "pathItemStringQuery", "localStringQuery": "localStringQuery"}


def without(*names):
    return PATHS | {name: value for name, value in QUERIES.items() if name not in names}


BODIES = {
    "basic_putValid": {"id": 2, "name": "abc", "color": "Magenta"},
    "primitive_putString": {"field": "goodrequest", "empty": ""},
    "readonlyproperty_putValid": {"size": 2},
    "putPet": {"name": "Butter"},
    "putHorse": {"name": "General", "isAShowHorse": False},
    "putFeline": {"meows": False, "hisses": True},
    "putCat": {"name": "Boots", "likesMilk": False, "meows": True, "hisses": False},
    "putKitten": {"name": "Kitty", "likesMilk": False, "meows": True, "hisses": False, "eatsMiceYet": True},
    "time_put": "08:07:56",
    "duration_putPositiveDuration": "P123DT22H14M12.011S",
    "int_putMax32": 2147483647,
    "int_putMin32": -2147483648,
    "int_putMax64": 9223372036854775807,
    "int_putMin64": -9223372036854775808,
    "Int_put": 200,
    "Float_put": 200.4,
    "enum_putReferencedConstant": {"ColorConstant": "green-color"},
    "putArray": [{"location": "West US", "tags": {"tag1": "value1", "tag2": "value3"}}, {"location": "Building 44"}],
    "putDictionary": DICTIONARY,
    "putResourceCollection": {
        "arrayofresources": [ONE, {"location": "East US", "properties": {"p.name": "Product2", "type": "Flat"}}],
        "dictionaryofresources": DICTIONARY,
        "productresource": {"location": "India", "properties": {"p.name": "Azure", "type": "Flat"}},
    },
    "putSimpleProduct": INHERITED,
    "postFlattenedSimpleProduct": FLAT,
    "Upload_Binary": "AP8B",
    "formdata_UploadFileViaBody": {"data": "aGVsbG8="},
    "explicit_putRequiredBinaryBody": {"data": "aGVsbG8="},
    "operationWithContentParam": {"data": "aGVsbG8sIHdvcmxk"},
    "patchSingle": {"foo": None},
    "Pet_AddPet": {"name": "Retriever", "IntEnum": "3", "DaysOfWeek": "Friday"},
    "dictionary_putDateTimeValid": {"0": "2000-12-01T00:00:01Z", "1": "1980-01-01T23:11:35Z", "2": "1492-10-12T18:15:01Z"},
    "datetime_putUtcMaxDateTime": "9999-12-31T23:59:59.999Z",
    "datetime_putUtcMaxDateTime7Digits": "9999-12-31T23:59:59.9999999Z",
    "datetime_putLocalPositiveOffsetMaxDateTime": "9999-12-31T23:59:59.999+14:00",
    "datetime_putLocalNegativeOffsetMaxDateTime": "9999-12-31T23:59:59.999-14:00",
    "datetimerfc1123_putUtcMaxDateTime": "Fri, 31 Dec 9999 23:59:59 GMT",
    "contentTypeWithEncoding": "hello",
    "Paging_getSinglePagesWithBodyParams": {"name": "body"},
    "xml_jsonInput": {"id": 42},
    "params_postParameters": {"url": "http://example.org/myimage.jpeg"},
    "string_putNull": ...,
    "polymorphism_putMissingDiscriminator": {
        **{"fishtype": "salmon", "location": "alaska", "iswild": True, "species": "king", "length": 1.0},
        "siblings": [
            {"fishtype": "shark", "age": 6, "birthday": "2012-01-05T01:00:00Z", "length": 20.0, "species": "predator"},
            {
                "fishtype": "sawshark",
                "age": 105,
                "birthday": "1900-01-05T01:00:00Z",
                "length": 10.0,
                "picture": "//////4=",
                "species": "dangerous",
            },
            {
                "fishtype": "goblin",
                "age": 1,
                "birthday": "2015-08-08T00:00:00Z",
                "length": 30.0,
                "species": "scary",
                "jawsize": 5,
                "color": "pinkish-gray",
            },
        ],
    },
}
VALUES |= {operation: {"body": body} for operation, body in BODIES.items()}
VALUES |= {
    "putSimpleProductWithGrouping": {"name": "groupproduct", "body": FLAT},
    "put[]": [{"body": {"foo": "bar"}}, {"body": {"other": 1}}],
    "AnalyzeBody[]": [{"body": {"source": "foo"}}, {"body": {"data": "UERG"}, "contentType": "application/pdf"}],
    "AnalyzeBodyNoAcceptHeader[]": [{"body": {"source": "foo"}}],
    "binaryBodyWithTwoContentTypes[]": [
        {"body": {"hello": "world"}, "contentType": "application/json"},
        {"body": {"data": "AP8B"}, "contentType": "application/octet-stream"},
    ],
    "OperationGroupTwo_testFour[]": [
        {"api-version": "2.0.0", "parameterOne": True},
        {"api-version": "3.0.0", "body": {"source": "foo"}},
    ],
    "test[]": [{"id": 1, "api-version": "1.0.0"}, {"id": 2, "api-version": "2.0.0"}],
    "testDifferentCalls[]": [
        {"api-version": "1.0.0", "greetingInEnglish": "hello"},
        {"api-version": "2.0.0", "greetingInEnglish": "hello", "greetingInChinese": "nihao"},
        {"api-version": "3.0.0", "greetingInEnglish": "hello", "greetingInChinese": "nihao", "greetingInFrench": "bonjour"},
    ],
    "parameterGrouping_groupWithConstant": {"groupedConstant": "foo", "groupedParameter": "bar"},
    "parameterGrouping_postRequired": {"body": 1234, "path": "path", "customHeader": "header", "query": 21},
    "parameterGrouping_postReservedWords": {"from": "bob", "accept": "yes"},
    "paths_getEmpty[]": [{"subscriptionId": "test12", "keyName": "key1", "keyVersion": "v1"}, {}],
    "Pet_GetByPetId[]": [{"petId": "tommy"}, {"petId": "casper"}, {"petId": "scooby"}],
    "Pet_GetPetById[]": [{"petId": one} for one in ("tommy", "coyoteUgly", "django", "alien123", "ringo", "weirdAlYankovic")],
    "Pet_DoSomething[]": [{"whatAction": one} for one in ("stay", "jump", "fetch", "barkLoudly", "bark")],
    "Pet_HasModelsParam": {"models": "value1"},
    "odata_getWithFilter": {"$filter": "id gt 5 and name eq 'foo'", "$top": 10, "$orderby": "id"},
    "xMsClientRequestId_get[]": [{"x-ms-client-request-id": CLIENT}, {}, {"x-ms-client-request-id": "other"}],
    "skipUrlEncoding_getMethodPathValid": {"unencodedPathParam": "path1/path2/path3"},
    "skipUrlEncoding_getPathPathValid": {"unencodedPathParam": "path1/path2/path3"},
    "skipUrlEncoding_getMethodQueryValid": {"q1": "value1&q2=value2&q3=value3"},
    "skipUrlEncoding_getPathQueryValid": {"q1": "value1&q2=value2&q3=value3"},
    "Paging_getWithQueryParams": {"requiredQueryParameter": 100, "queryConstant": True},
    "Paging_getMultiplePagesFragmentNextLink": {"api_version": "1.6", "tenant": "test_user"},
    "Paging_getMultiplePagesFragmentWithGroupingNextLink": {"api_version": "1.6", "tenant": "test_user"},
    "implicit_getRequiredGlobalPath": {"required-global-path": "value"},
    "operationWithUrl": {"url": "foo", "headerParameters": "x", "queryParameters": ["one", "two"]},
    "import_operationOne": {"parameter1": "foo"},
    "group_getSampleResourceGroup": {"subscriptionId": "1234-5678-9012-3456", "resourceGroupName": "testgroup101"},
    "paths_enumValid": {"enumPath": "green color"},
    "queries_enumValid": {"enumQuery": "green color"},
    "paths_byteMultiByte": {"bytePath": MULTIBYTE},
    "queries_byteMultiByte": {"byteQuery": MULTIBYTE},
    "paths_base64Url": {"base64UrlPath": "bG9yZW0"},
    "paths_unixTimeUrl": {"unixTimeUrlPath": 1460505600},
    "paths_ArrayCsvInPath": {"arrayPath": ["ArrayPath1", RESERVED, "", ""]},
    "queries_ArrayStringNoCollectionFormatEmpty": {"arrayQuery": ["hello", "nihao", "bonjour"]},
    "queries_ArrayStringCsvEmpty": {"arrayQuery": []},
    **{
        f"queries_{name}": {"arrayQuery": ["ArrayQuery1", RESERVED, "", ""]}
        for name in ("ArrayStringCsvValid", "ArrayStringSsvValid", "ArrayStringTsvValid", "ArrayStringPipesValid", "ArrayStringMultiValid")
    },
    "pathItems_getAllWithValues": without(),
    "pathItems_getGlobalQueryNull": without("globalStringQuery"),
    "pathItems_getGlobalAndLocalQueryNull": without("globalStringQuery", "localStringQuery"),
    "pathItems_getLocalPathItemQueryNull": without("localStringQuery", "pathItemStringQuery"),
}
